//! The files that make each Python of a program load the library.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// The name of the library.
pub const LIBRARY: &str = "libblockyard_watch.so";

/// The name of the file that a Python runs to be watched.
pub const ATTACH: &str = "attach.py";

/// The files of the hook.
const HOOK: [(&str, &str); 4] = [
    ("sitecustomize.py", include_str!("python/sitecustomize.py")),
    ("blockyard_loaded.py", blockyard_hooks::LOADED),
    ("blockyard_watch.py", include_str!("python/blockyard_watch.py")),
    ("blockyard_watch_debug.py", include_str!("python/blockyard_watch_debug.py")),
];

/// Writes the files of the hook into a folder.
///
/// # Errors
///
/// Those of writing a file.
pub fn write_hook(folder: &Path) -> io::Result<()> {
    HOOK.iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
}

/// Writes the file that a Python runs to be watched from then on, with the [`environment`] of its processes.
///
/// # Errors
///
/// Those of writing a file.
pub fn write_attach(folder: &Path, environment: &[(&str, OsString)]) -> io::Result<()> {
    let variables: BTreeMap<_, _> =
        environment.iter().map(|(name, value)| (*name, value.to_string_lossy())).collect();
    // JSON of texts is Python too.
    let variables = serde_json::to_string(&variables)?;
    let path = serde_json::to_string(&folder.to_string_lossy())?;
    let text = format!(
        "import os, sys\nos.environ.update({variables})\nsys.path.insert(0, {path})\n\
         import blockyard_watch\nsys.path.remove({path})\nblockyard_watch.install()\n"
    );
    // A reader that waits for the file finds all of it.
    let unfinished = folder.join("attach.new");
    std::fs::write(&unfinished, text)?;
    std::fs::rename(unfinished, folder.join(ATTACH))
}

/// Sends PyTorch's snapshot after each step to compare it, where it is set.
pub const CHECK_VARIABLE: &str = "BLOCKYARD_WATCH_CHECK";
/// Takes the stack of each request, where it is set.
pub const ALL_LINES_VARIABLE: &str = "BLOCKYARD_WATCH_ALL_LINES";

/// The variables of a watched program: the folder of the hook, the socket, the library, and those that are set.
pub fn environment(
    folder: &Path,
    socket: &Path,
    library: &Path,
    set: impl IntoIterator<Item = &'static str>,
) -> Vec<(&'static str, OsString)> {
    let mut path = folder.as_os_str().to_owned();
    if let Some(before) = std::env::var_os("PYTHONPATH").filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    let mut all = vec![
        ("PYTHONPATH", path),
        ("BLOCKYARD_WATCH_SOCKET", socket.into()),
        ("BLOCKYARD_WATCH_LIBRARY", library.into()),
    ];
    all.extend(set.into_iter().map(|name| (name, "1".into())));
    all
}
