//! Builds our extension as a side module: WebAssembly that a running program of Emscripten, here CPython, loads
//! into its own memory.
//!
//! Rust's linker for this target would be Emscripten's compiler, a download of 1.5 GB. The linker under that
//! compiler, `rust-lld`, is in every toolchain, and a side module needs nothing else: what is missing in it,
//! as the C library, CPython has. So this program stands in for the compiler: cargo is told that its linker is
//! this program, and a variable tells this program that it is one.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use cargo_metadata::Metadata;

use crate::setup;
use crate::workspace::{self, Workspace};

/// The name of the target.
pub(super) const EMSCRIPTEN: &str = "wasm32-unknown-emscripten";
/// The package of the extension, and its library.
const PACKAGE: &str = "blockyard-python-extension";
const LIBRARY: &str = "_blockyard";
/// The path of `rust-lld`, where this program is run as a linker.
const LINKER: &str = "BLOCKYARD_SIDE_MODULE_LINKER";

/// Compiles the extension and returns the path of the side module.
pub(super) fn build(workspace: &Workspace, metadata: &Metadata, profile: &str) -> Result<PathBuf> {
    setup::rust_target(workspace, EMSCRIPTEN)?;
    let mut cargo = workspace.cargo(["build", "--profile", profile, "--target", EMSCRIPTEN]);
    cargo.args(["--package", PACKAGE]);
    cargo.env("CARGO_TARGET_WASM32_UNKNOWN_EMSCRIPTEN_LINKER", std::env::current_exe()?);
    // In a page a panic ends the worker. Without this flag the module would need the tables of exceptions.
    cargo.env("CARGO_TARGET_WASM32_UNKNOWN_EMSCRIPTEN_RUSTFLAGS", "-Cpanic=abort");
    cargo.env(LINKER, rust_lld(workspace)?);
    // Without this PyO3 would ask a Python of this machine about itself.
    cargo.envs([("PYO3_CROSS", "1"), ("PYO3_CROSS_PYTHON_VERSION", "3.13")]);
    workspace::run(&mut cargo)?;
    // Cargo names the folder of the `dev` profile `debug`.
    let folder = if profile == "dev" { "debug" } else { profile };
    let built = metadata.target_directory.join(EMSCRIPTEN).join(folder).join(format!("{LIBRARY}.wasm"));
    Ok(built.into_std_path_buf())
}

/// The linker of the toolchain.
fn rust_lld(workspace: &Workspace) -> Result<PathBuf> {
    let rustc = || workspace.program(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let version = workspace::read(rustc().arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say its host")?;
    let sysroot = PathBuf::from(workspace::read(rustc().args(["--print", "sysroot"]))?.trim());
    let linker = sysroot.join("lib/rustlib").join(host).join("bin").join("rust-lld");
    let linker = linker.with_extension(std::env::consts::EXE_EXTENSION);
    ensure!(linker.is_file(), "this Rust has no {}: install Rust with rustup", linker.display());
    Ok(linker)
}

/// The path of `rust-lld` if this program is run as a linker.
pub(crate) fn linker() -> Option<OsString> {
    std::env::var_os(LINKER)
}

/// Links a side module, as the arguments of this program ask for.
pub(crate) fn link(linker: &OsStr) -> ExitCode {
    let outcome = arguments(std::env::args_os().skip(1)).and_then(|arguments| {
        let mut command = Command::new(linker);
        command.args(linker_arguments(&arguments)?);
        let status = command.status().with_context(|| format!("cannot run {}", linker.display()))?;
        ensure!(status.success(), "rust-lld failed ({status})");
        Ok(())
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The arguments with those of a file in the place of `@FILE`, which rustc passes where a command would be too
/// long.
fn arguments(given: impl Iterator<Item = OsString>) -> Result<Vec<String>> {
    let mut arguments = Vec::new();
    for argument in given {
        let argument = argument.into_string().ok().context("an argument is not text")?;
        match argument.strip_prefix('@') {
            Some(file) => {
                let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
                // A backslash precedes a space or a backslash.
                let plain = |line: &str| line.trim_matches('"').replace("\\ ", " ").replace("\\\\", "\\");
                arguments.extend(text.lines().map(plain));
            }
            None => arguments.push(argument),
        }
    }
    Ok(arguments)
}

/// What `rust-lld` is called with, from the arguments for Emscripten's compiler: its inputs and its output.
/// The other arguments say what Emscripten is to do beside linking.
fn linker_arguments(arguments: &[String]) -> Result<Vec<String>> {
    let mut linking: Vec<String> = [
        "-flavor",
        "wasm",
        "-shared",
        "--experimental-pic",
        "--no-entry",
        "--export=PyInit__blockyard",
        "--export-if-defined=__wasm_call_ctors",
        // CPython has what is undefined here, and its memory.
        "--allow-undefined",
        "--unresolved-symbols=import-dynamic",
        "--import-memory",
        "-Bsymbolic",
        "--gc-sections",
        "--strip-all",
        // Rust's own libraries name fewer features of WebAssembly than ours.
        "--no-check-features",
    ]
    .map(str::to_owned)
    .into();
    let mut arguments = arguments.iter();
    let mut output = None;
    while let Some(argument) = arguments.next() {
        if argument == "-o" {
            output = arguments.next();
        } else if !argument.starts_with('-')
            && [".o", ".rlib", ".a"].iter().any(|ending| argument.ends_with(ending))
        {
            linking.push(argument.clone());
        }
    }
    let output = output.context("rustc names no output")?;
    linking.extend(["-o".to_owned(), output.clone()]);
    Ok(linking)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_and_output_are_passed_on_and_the_rest_is_not() {
        let given =
            ["-s", "EXPORTED_FUNCTIONS=[\"_PyInit\"]", "a.o", "-L", "lib", "b.rlib", "-o", "out.wasm", "-Oz"];
        let linking = linker_arguments(&given.map(str::to_owned)).unwrap();
        assert!(linking.ends_with(&["a.o", "b.rlib", "-o", "out.wasm"].map(str::to_owned)), "{linking:?}");
        assert!(!linking.iter().any(|argument| argument == "-Oz" || argument == "lib"), "{linking:?}");
        assert!(linker_arguments(&["a.o".to_owned()]).is_err());
    }

    #[test]
    fn arguments_are_read_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("arguments");
        fs::write(&file, "\"a\\ b.o\"\n-o\nout\n").unwrap();
        let read = arguments([OsString::from(format!("@{}", file.display())), "c.o".into()].into_iter());
        assert_eq!(read.unwrap(), ["a b.o", "-o", "out", "c.o"]);
    }
}
