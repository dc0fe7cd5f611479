//! Lists the Python files of `lib` and `fallbacks`, and those that `lib` shares with dry runs, with their texts,
//! so that the crate holds them.

use std::error::Error;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::{env, fs};

/// Adds the Python files of a folder, in the order of their names.
fn add(folder: &Path, files: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() && !path.ends_with("__pycache__") {
            add(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "py") {
            files.push(path.to_str().ok_or("a file's name is not UTF-8")?.replace('\\', "/"));
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in ["lib", "fallbacks"] {
        println!("cargo::rerun-if-changed={folder}");
        add(Path::new(folder), &mut files)?;
    }
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let mut hash = DefaultHasher::new();
    let mut text = String::from("pub(crate) const FILES: &[(&str, &str)] = &[\n");
    for file in &files {
        (file, fs::read(file)?).hash(&mut hash);
        writeln!(text, "    ({file:?}, include_str!({:?})),", format!("{root}/{file}"))?;
    }
    for (file, content) in blockyard_hooks::KEEPERS {
        (file, content).hash(&mut hash);
        writeln!(text, "    ({:?}, {content:?}),", format!("lib/{file}"))?;
    }
    writeln!(text, "];\npub(crate) const HASH: &str = \"{:016x}\";", hash.finish())?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("library.rs"), text)?;
    Ok(())
}
