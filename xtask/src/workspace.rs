//! The folders of the repository, and functions that run programs there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The name of the target that the page is built for.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";

/// The repository that this program was built from.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Self {
        let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        root.pop();
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The page, ready to be served.
    pub(crate) fn dist(&self) -> PathBuf {
        self.root.join("dist")
    }

    /// The folder of the page that `cargo xtask play` serves and the tests open.
    pub(crate) fn tested_page(&self) -> PathBuf {
        self.root.join("target/tested-page")
    }

    /// Files that the set-up fetches; not in git.
    pub(crate) fn tools(&self) -> PathBuf {
        self.root.join("target/tools")
    }

    /// The files of the repository, by their paths from the root.
    pub(crate) fn listed_files(&self) -> Result<Vec<String>> {
        let listed = self.program("git").args(["ls-files", "-z"]).output().context("cannot run git")?;
        ensure!(listed.status.success(), "git does not list the files of the repository");
        let listed = String::from_utf8(listed.stdout)?;
        Ok(listed.split_terminator('\0').map(str::to_owned).collect())
    }

    /// `cargo` of the running toolchain, at the root of the repository.
    pub(crate) fn cargo(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = self.program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments);
        command
    }

    /// A program at the root of the repository.
    pub(crate) fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(name);
        command.current_dir(&self.root);
        command
    }
}

/// Prints `command` and runs it with its output on the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = shown(command);
    println!("    $ {line}");
    let status = command.status().with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs `command` and returns its output; its errors go to the terminal.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let line = shown(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed something that is not text"))
}

/// Whether `command` runs and succeeds; its output is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The path at which the system finds the program `name`; `None` if it is not installed.
pub(crate) fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut line = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
