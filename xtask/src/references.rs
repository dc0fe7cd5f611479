//! Room for more references to one object in the page's Python interpreter.
//!
//! The published interpreter counts references in 15 bits on targets of 32 bits, and ends the program when a
//! count exceeds them. Each number of a list refers to its class, so a page could have at most 32,767
//! numbers. The other bits of the word are for a count of weak references that nothing reads. Release 0.6 of
//! the interpreter counts in 28 bits, but its parser needs Rust 1.96.
//!
//! So the page is built with a copy of the one package that counts, made in `target/` from what cargo
//! fetched, with one constant changed. The copy can be removed when the interpreter is 0.6.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use cargo_metadata::Metadata;

const PACKAGE: &str = "rustpython-common";
/// The file of the package that is changed. [`NARROW`] is its line, and [`WIDE`] the line that replaces it.
const FILE: &str = "src/refcount.rs";
const NARROW: &str = "const WEAK_WIDTH: u32 = TOTAL_COUNT_WIDTH / 2;";
const WIDE: &str = "const WEAK_WIDTH: u32 = 1;";

/// The arguments that make cargo compile the copy.
pub(crate) fn cargo_arguments(metadata: &Metadata) -> Result<[String; 2]> {
    let found: Vec<_> = metadata.packages.iter().filter(|package| package.name == PACKAGE).collect();
    ensure!(found.len() == 1, "the lock file has {} versions of {PACKAGE}", found.len());
    let source = found.first().and_then(|package| package.manifest_path.parent());
    let source = source.with_context(|| format!("{PACKAGE} has no folder"))?.as_std_path();
    let copy = metadata.target_directory.join("references").join(PACKAGE);
    copy_changed(source, copy.as_std_path())
        .with_context(|| format!("cannot copy {PACKAGE} with room for more references"))?;
    Ok(["--config".to_owned(), format!("paths={:?}", [copy.as_str()])])
}

/// Copies the package; a file that exists already is left alone, so that cargo compiles nothing again.
fn copy_changed(source: &Path, copy: &Path) -> Result<()> {
    let mut changed = false;
    for file in files_below(source)? {
        let name = file.strip_prefix(source)?;
        let mut bytes = fs::read(&file)?;
        if name == Path::new(FILE) {
            bytes = widened(&String::from_utf8(bytes)?)?.into_bytes();
            changed = true;
        }
        let target = copy.join(name);
        if fs::read(&target).ok().as_ref() != Some(&bytes) {
            fs::create_dir_all(target.parent().unwrap_or(copy))?;
            fs::write(&target, bytes)?;
        }
    }
    ensure!(changed, "there is no {FILE}");
    Ok(())
}

/// The text with all bits but one for the count of references that keep an object alive.
fn widened(text: &str) -> Result<String> {
    ensure!(text.matches(NARROW).count() == 1, "{FILE} does not say `{NARROW}` once");
    Ok(text.replace(NARROW, WIDE))
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata;
    use crate::workspace::Workspace;

    #[test]
    fn the_constant_changes_and_nothing_else() {
        let text = format!("const A: u32 = 1;\n{NARROW}\nconst B: u32 = 2;\n");
        assert_eq!(widened(&text).unwrap(), format!("const A: u32 = 1;\n{WIDE}\nconst B: u32 = 2;\n"));
    }

    #[test]
    fn a_package_that_counts_in_another_way_is_an_error() {
        let error = widened("const STRONG_WIDTH: u32 = usize::BITS - 4;").unwrap_err().to_string();
        assert!(error.contains("does not say"), "{error}");
    }

    #[test]
    fn cargo_is_told_where_the_copy_lies() {
        let metadata = metadata::read(&Workspace::find()).unwrap();
        let [flag, paths] = cargo_arguments(&metadata).unwrap();
        assert_eq!(flag, "--config");
        assert!(paths.starts_with("paths=[\"") && paths.ends_with("rustpython-common\"]"), "{paths}");
        let copied = metadata.target_directory.join("references").join(PACKAGE).join(FILE);
        assert!(fs::read_to_string(copied).unwrap().contains(WIDE));
    }
}
