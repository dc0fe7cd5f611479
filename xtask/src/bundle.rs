//! Builds the page into `dist/`: the programs as WebAssembly, their bindings, and the files that go with them.
//!
//! No bundler does this, because none cuts the page's program into parts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Instant, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use blockyard_serve::{SERVICE_WORKER, service_worker};
use cargo_metadata::Metadata;

use crate::metadata;
use crate::page::{FILES, FOLDERS, PROGRAMS, Program, STYLE, STYLE_PARTS};
use crate::python::{self, NoPython};
use crate::setup;
use crate::workspace::{self, WASM, Workspace};

/// The profile of the tests and of `cargo xtask play`.
pub(crate) const TEST_PROFILE: &str = "wasm-test";

/// Our tool that makes the files that a browser loads of a program, and its profile.
pub(crate) const BINDGEN: &str = "blockyard-bindgen";
pub(crate) const TOOL_PROFILE: &str = "tool";

/// The files of `dist/` by their path inside it.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Brings `dist/` up to date; this is quick if nothing changed.
pub(crate) fn build(workspace: &Workspace) -> Result<()> {
    build_to(workspace, &workspace.dist(), None)
}

/// Brings the folder `out` up to date, which then has the page and nothing else. `profile` replaces the
/// profiles of cargo of the programs, for a faster build.
pub(crate) fn build_to(workspace: &Workspace, out: &Path, profile: Option<&str>) -> Result<()> {
    let begun = Instant::now();
    let metadata = read_metadata(workspace)?;
    let mut files = Files::new();
    add_programs(&mut files, workspace, &metadata, profile)?;
    add_assets(&mut files, workspace)?;
    add_python(&mut files, workspace, &metadata, profile)?;
    ensure_ours(out)?;
    update(out, &with_service_worker(files.clone()))?;
    say_ready(out, &files, begun);
    Ok(())
}

/// Makes the folder `out` hold the page that was built into `page`, and nothing else.
pub(crate) fn copy_built(page: &Path, out: &Path) -> Result<()> {
    let mut files = Files::new();
    add_folder(&mut files, page, Path::new(""))?;
    ensure_ours(out)?;
    update(out, &files)
}

/// Brings the folder of the tested page up to date without Python, calls `serve` with it, and adds Python
/// after it.
///
/// In return the page is ready minutes earlier on a machine that has to fetch Python and to compile our
/// extension. The page has the profile of the tests, which is compiled in half the time of the visitors' page.
pub(crate) fn build_python_last<R>(
    workspace: &Workspace,
    serve: impl FnOnce(&Path) -> Result<R>,
) -> Result<R> {
    let (out, begun) = (workspace.tested_page(), Instant::now());
    let metadata = read_metadata(workspace)?;
    let mut files = Files::new();
    add_programs(&mut files, workspace, &metadata, Some(TEST_PROFILE))?;
    add_assets(&mut files, workspace)?;
    ensure_ours(&out)?;
    files.insert(ABSENT.into(), b"building\n".to_vec());
    update(&out, &with_service_worker(files.clone()))?;
    let served = serve(&out)?;
    println!("    adding Python; the page takes it when it is ready");
    let python = python::build(workspace, &metadata, Some(TEST_PROFILE));
    // The page works without Python, and says why it has none. Else Python's files are written before the file
    // that says they are being made is removed.
    let (python, why) = match python {
        Ok(python) => (python, None),
        Err(NoPython::Fetch(why) | NoPython::Build(why)) => (Files::new(), Some(why)),
    };
    files.extend(python);
    update(&out, &with_service_worker(files.clone()))?;
    files.remove(Path::new(ABSENT));
    if let Some(why) = why {
        add_absence(&mut files, &why);
    }
    update(&out, &with_service_worker(files.clone()))?;
    say_ready(&out, &files, begun);
    Ok(served)
}

/// This file beside the page says why the page has no Python. The page knows two texts: `building`, as long
/// as Python's files are being made, and a sentence that begins as [`NO_PYTHON`] does.
const ABSENT: &str = "python/absent.txt";
/// How a reason begins.
const NO_PYTHON: &str = "this page was built without Python";

/// Adds the file that says why there is no Python. The causes, which may name folders of this machine, are for
/// the terminal.
fn add_absence(files: &mut Files, why: &anyhow::Error) {
    println!("    {NO_PYTHON}: {why:#}");
    files.insert(ABSENT.into(), format!("{NO_PYTHON}: {why}\n").into_bytes());
}

/// Adds Python, or where Pyodide cannot be fetched the file that says so.
fn add_python(
    files: &mut Files,
    workspace: &Workspace,
    metadata: &Metadata,
    profile: Option<&str>,
) -> Result<()> {
    match python::build(workspace, metadata, profile) {
        Ok(python) => files.extend(python),
        Err(NoPython::Fetch(why)) => add_absence(files, &why),
        Err(NoPython::Build(error)) => return Err(error),
    }
    Ok(())
}

/// The files with the worker that keeps them in the reader's browser.
fn with_service_worker(mut files: Files) -> Files {
    let names: Vec<(String, &[u8])> = files
        .iter()
        .map(|(path, bytes)| (path.to_string_lossy().replace('\\', "/"), bytes.as_slice()))
        .collect();
    let listed = names.iter().filter(|(name, _)| name != ABSENT && name != SERVICE_WORKER);
    let worker =
        service_worker("// Written by `cargo xtask`.", listed.map(|(name, bytes)| (name.as_str(), *bytes)));
    files.insert(SERVICE_WORKER.into(), worker.into_bytes());
    files
}

/// The metadata of the workspace, after the set-up that a build needs.
fn read_metadata(workspace: &Workspace) -> Result<Metadata> {
    setup::wasm_target(workspace)?;
    let metadata = metadata::read(workspace)?;
    metadata::check_bindgen(&metadata)?;
    Ok(metadata)
}

fn say_ready(out: &Path, files: &Files, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    println!("    {} is up to date, {} files, {seconds:.1} s", out.display(), files.len());
}

fn add_programs(
    files: &mut Files,
    workspace: &Workspace,
    metadata: &Metadata,
    profile: Option<&str>,
) -> Result<()> {
    // The tool is compiled while the programs are. Its profile has its own folder, so that neither waits
    // for the other.
    let (tool, compiled) = thread::scope(|scope| {
        let tool = scope.spawn(|| {
            workspace::run(&mut workspace.cargo(["build", "--profile", TOOL_PROFILE, "--package", BINDGEN]))
        });
        let compiled = compile(workspace, metadata, profile);
        (tool.join(), compiled)
    });
    ended(tool)?;
    let compiled = compiled?;
    let folder = metadata.target_directory.as_std_path().join(TOOL_PROFILE);
    let tool = folder.join(format!("{BINDGEN}{}", std::env::consts::EXE_SUFFIX));
    let place = metadata.target_directory.join("page").into_std_path_buf();
    thread::scope(|scope| {
        let (tool, place) = (&tool, &place);
        let bound: Vec<_> = PROGRAMS
            .iter()
            .zip(&compiled)
            .map(|(program, wasm)| scope.spawn(move || bind(workspace, tool, program, wasm, place)))
            .collect();
        for bound in bound {
            let folder = ended(bound.join())?;
            add_folder(files, &folder, Path::new(""))?;
        }
        Ok(())
    })
}

/// The result of a thread.
fn ended<T>(result: thread::Result<Result<T>>) -> Result<T> {
    result.unwrap_or_else(|_panic| bail!("a thread that builds the page ended"))
}

fn add_assets(files: &mut Files, workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    for (source, target) in FILES {
        add_file(files, &root.join(source), target.into())?;
    }
    for (source, target) in FOLDERS {
        add_folder(files, &root.join(source), Path::new(target))?;
    }
    files.insert(STYLE.into(), joined_style(root)?.into_bytes());
    Ok(())
}

/// The parts of the style as one text, in their order. Comments are for readers of the source: they are a
/// sixth of the style's bytes.
fn joined_style(root: &Path) -> Result<String> {
    let mut style = String::new();
    for part in STYLE_PARTS {
        let text = fs::read_to_string(root.join("web/style").join(part))
            .with_context(|| format!("the page needs {part}, which cannot be read"))?;
        style.push_str(&without_comments(&text));
    }
    Ok(style)
}

/// Compiles the programs and returns the paths of the results, in the order of the programs.
///
/// Programs of one profile are compiled in one run of cargo, so that shared crates are compiled once: in two
/// runs their features would differ.
fn compile(workspace: &Workspace, metadata: &Metadata, profile: Option<&str>) -> Result<Vec<PathBuf>> {
    let profile_of = |program: &Program| profile.unwrap_or(program.profile).to_owned();
    let profiles: BTreeSet<String> = PROGRAMS.iter().map(profile_of).collect();
    for profile in profiles {
        let mut cargo = workspace.cargo(["build", "--profile", &profile, "--target", WASM]);
        for program in PROGRAMS.iter().filter(|program| profile_of(program) == profile) {
            cargo.args(["--package", program.package, "--bin", program.bin]);
            if program.is_page() {
                cargo.args(["--features", &format!("{}/split", program.package)]);
            }
        }
        workspace::run(&mut cargo)?;
    }
    let built = metadata.target_directory.as_std_path().join(WASM);
    let place = |program: &Program| {
        // Cargo names the folder of the `dev` profile `debug`.
        let profile = profile_of(program);
        let folder = if profile == "dev" { "debug" } else { &profile };
        built.join(folder).join(format!("{}.wasm", program.bin))
    };
    Ok(PROGRAMS.iter().map(place).collect())
}

/// Makes the files of `wasm` that the browser loads, in a folder below `place`, unless they exist: the page's
/// own program is cut into parts, and every program gets its bindings of JavaScript.
fn bind(workspace: &Workspace, tool: &Path, program: &Program, wasm: &Path, place: &Path) -> Result<PathBuf> {
    let folder = place.join(program.bin);
    let stamp_file = folder.with_extension("stamp");
    let stamp = stamp(wasm, tool)?;
    if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) && folder.is_dir() {
        return Ok(folder);
    }
    let mut command = workspace.program(tool);
    command.arg(wasm).arg(&folder);
    if program.is_page() {
        command.arg("--parts");
    }
    workspace::run(&mut command)?;
    for name in files_below(&folder)? {
        if name.extension().is_some_and(|extension| extension == "js") {
            let path = folder.join(name);
            fs::write(&path, without_comments(&fs::read_to_string(&path)?))?;
        }
    }
    fs::write(&stamp_file, stamp)?;
    Ok(folder)
}

/// The script or style without indents, empty lines, and comments that fill whole lines, which are a fifth of
/// the bindings' bytes.
///
/// Bindings and styles have no text literals of several lines, which this function would change.
fn without_comments(script: &str) -> String {
    let mut is_comment = false;
    let mut plain = String::with_capacity(script.len());
    for line in script.lines().map(str::trim_start) {
        is_comment |= line.starts_with("/*");
        if !is_comment && !line.is_empty() && !line.starts_with("//") {
            plain.push_str(line);
            plain.push('\n');
        }
        is_comment &= !line.ends_with("*/");
    }
    plain
}

/// A text that changes whenever cargo writes the file or the tool again.
fn stamp(wasm: &Path, tool: &Path) -> Result<String> {
    let written = |file: &Path| -> Result<String> {
        let metadata = fs::metadata(file).with_context(|| format!("{} was not built", file.display()))?;
        let time = metadata.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
        Ok(format!("{time} {}", metadata.len()))
    };
    Ok(format!("{} {} {}", written(wasm)?, written(tool)?, wasm.display()))
}

fn add_file(files: &mut Files, source: &Path, target: PathBuf) -> Result<()> {
    let bytes = fs::read(source)
        .with_context(|| format!("the page needs {}, which cannot be read", source.display()))?;
    ensure!(!files.contains_key(&target), "two files of the page are called {}", target.display());
    files.insert(target, bytes);
    Ok(())
}

fn add_folder(files: &mut Files, source: &Path, target: &Path) -> Result<()> {
    let names = files_below(source)
        .with_context(|| format!("the page needs {}, which cannot be read", source.display()))?;
    for name in names {
        add_file(files, &source.join(&name), target.join(&name))?;
    }
    Ok(())
}

/// Refuses a folder that is neither new, nor empty, nor made by an earlier build, because a build removes all
/// other files.
fn ensure_ours(folder: &Path) -> Result<()> {
    let is_new = !folder.exists() || fs::read_dir(folder)?.next().is_none();
    let is_ours = is_new || folder.join("blockyard-web.js").is_file();
    ensure!(is_ours, "{} has other files in it: name a new or empty folder", folder.display());
    Ok(())
}

/// Makes `folder` hold `files` and nothing else. Only files that differ are written: a server may be reading
/// the folder.
fn update(folder: &Path, files: &Files) -> Result<()> {
    fs::create_dir_all(folder)?;
    for name in files_below(folder)? {
        if !files.contains_key(&name) {
            fs::remove_file(folder.join(name))?;
        }
    }
    for (name, bytes) in files {
        let path = folder.join(name);
        if fs::read(&path).is_ok_and(|old| old == *bytes) {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        // The file is written under another name first, so that a server always finds a complete file, old or
        // new.
        let half = path.with_extension("half-written");
        fs::write(&half, bytes)
            .and_then(|()| fs::rename(&half, &path))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// All files below `folder`, by their path inside it, sorted.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inside))? {
            let entry = entry?;
            let name = inside.join(entry.file_name());
            if entry.path().is_dir() { folders.push(name) } else { found.push(name) }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_holds_the_files_it_was_given_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let files = |names: &[&str]| -> Files {
            names.iter().map(|name| (PathBuf::from(name), name.as_bytes().to_vec())).collect()
        };
        for names in [&["a.js", "below/b.wasm"][..], &["a.js", "c.building"], &["a.js"]] {
            update(folder, &files(names)).unwrap();
            let expected: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            assert_eq!(files_below(folder).unwrap(), expected);
        }
        assert_eq!(fs::read(folder.join("a.js")).unwrap(), b"a.js");
    }

    #[test]
    fn a_script_loses_comments_and_indents_and_nothing_else() {
        let script = "/**\n * Adds.\n */\nexport function add(a) {\n    // one more\n\n    return a /* it */ * 1;\n}\n/* here */\n";
        assert_eq!(without_comments(script), "export function add(a) {\nreturn a /* it */ * 1;\n}\n");
    }

    #[test]
    fn every_part_of_the_style_is_joined() {
        let workspace = Workspace::find();
        let root = workspace.root();
        let mut joined = STYLE_PARTS.map(PathBuf::from).to_vec();
        joined.sort();
        let folder = root.join("web/style");
        let parts = files_below(&folder).unwrap();
        assert_eq!(joined, parts);
        let count = |text: &str, brace: char| text.matches(brace).count();
        let mut rules = 0;
        for part in &parts {
            let text = without_comments(&fs::read_to_string(folder.join(part)).unwrap());
            assert_eq!(count(&text, '{'), count(&text, '}'), "{} ends within a rule", part.display());
            rules += count(&text, '{');
        }
        assert_eq!(count(&joined_style(root).unwrap(), '{'), rules);
    }

    #[test]
    fn the_folder_ends_up_with_the_files_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let files =
            |names: &[&str]| names.iter().map(|name| (name.into(), name.as_bytes().to_vec())).collect();
        update(folder, &files(&["index.html", "samples/old.gz"])).unwrap();
        update(folder, &files(&["index.html", "samples/new.gz"])).unwrap();
        assert_eq!(files_below(folder).unwrap(), [Path::new("index.html"), Path::new("samples/new.gz")]);
    }

    #[test]
    fn two_files_of_one_name_are_reported() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let mut files = Files::new();
        add_file(&mut files, &source, "a".into()).unwrap();
        assert!(add_file(&mut files, &source, "a".into()).is_err());
    }
}
