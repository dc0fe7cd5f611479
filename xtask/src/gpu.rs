//! `cargo xtask gpu`: tests and measurements on a machine with a GPU, which often has no toolchain.
//!
//! The scripts are in `xtask/gpu`, so that such a machine needs nothing but a shell: `pack` builds the files
//! for that machine into `target/gpu/KIND`, and `run` runs the tests or the measurements.

use std::ffi::OsString;

use anyhow::{Result, bail};

use crate::workspace::{self, Workspace};

/// The scripts: our tests and benchmark on CUDA and Vulkan, PyTorch with our plug-in, and `cargo xtask bench`
/// on a faster machine.
const KINDS: [&str; 3] = ["cuda", "torch", "bench"];

/// Runs the script that the first argument names, with the other arguments.
pub(crate) fn run(workspace: &Workspace, arguments: &[OsString]) -> Result<()> {
    let (script, rest) = script(arguments)?;
    workspace::run(workspace.program(workspace.root().join("xtask/gpu").join(script)).args(rest))
}

fn script(arguments: &[OsString]) -> Result<(String, &[OsString])> {
    let words: Vec<_> = arguments.iter().take(2).map(|word| word.to_str().unwrap_or_default()).collect();
    match words.as_slice() {
        [verb @ ("pack" | "run"), kind] if KINDS.contains(kind) => {
            Ok((format!("{verb}-{kind}.sh"), arguments.get(2..).unwrap_or_default()))
        }
        _ => bail!("`cargo xtask gpu` takes `pack` or `run`, and then one of {}", KINDS.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_that_is_named_exists() {
        let folder = Workspace::find().root().join("xtask/gpu");
        for verb in ["pack", "run"] {
            for kind in KINDS {
                let arguments = [verb, kind, "results"].map(OsString::from);
                let (script, rest) = script(&arguments).unwrap();
                assert!(folder.join(&script).is_file(), "{script}");
                assert_eq!(rest, ["results"]);
            }
        }
        assert!(script(&["pack".into()]).is_err());
        assert!(script(&["drop".into(), "cuda".into()]).is_err());
    }
}
