//! Builds our C++ sources with the system's compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use blockyard_rules::Release;

/// The folder of our C++ sources; its `include` has the headers that they and the wheel's headers include.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("native")
}

/// Builds our CUDA runtime for a release below `target`, cargo's target folder, unless it exists and is up to
/// date.
///
/// Returns the path of `libcudart.so.13`, or `.12`; its folder goes into `LD_LIBRARY_PATH` or a run path.
/// `standin.h`, in `native/include`, declares the functions by which a program controls the runtime.
///
/// # Errors
///
/// When no C++ compiler is installed, or it fails.
pub fn build_cudart(target: &Path, release: Release) -> Result<PathBuf> {
    let major = cuda_major(release);
    let map = sources().join(format!("cudart.{major}.map"));
    let script = format!("-Wl,--version-script={}", map.display());
    let name = format!("-Wl,-soname,libcudart.so.{major}");
    compile(
        &[sources().join("cudart.cpp")],
        &["-shared", "-fPIC", &name, &script],
        &target.join(format!("oracle/libcudart.so.{major}")),
    )
}

/// The version of CUDA that the release's wheel was compiled for.
pub(crate) fn cuda_major(release: Release) -> u32 {
    if release.minor() >= 11 { 13 } else { 12 }
}

/// Compiles C++ `files` into `output` with `options`, unless `output` is newer than all our sources; returns
/// `output`.
///
/// Our own headers are found; the compiler is the environment's `CXX`, or `c++`.
///
/// # Errors
///
/// When there is no C++ compiler, or it fails; the message has its output.
pub fn compile(files: &[PathBuf], options: &[&str], output: &Path) -> Result<PathBuf> {
    if is_fresh(output, files)? {
        return Ok(output.to_owned());
    }
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder)?;
    }
    // The new file is written beside the old one and renamed, because another process may have loaded the old
    // file.
    let new = output.with_extension(format!("{}.new", std::process::id()));
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let result = Command::new(&compiler)
        .args(["-std=c++20", "-O2", "-Wall", "-Wextra"])
        .arg("-I")
        .arg(sources().join("include"))
        .args(files)
        .args(options)
        .arg("-o")
        .arg(&new)
        .output()
        .with_context(|| format!("no C++ compiler: `{compiler}` does not run; install g++ or clang"))?;
    if !result.status.success() {
        let output_text = String::from_utf8_lossy(&result.stderr);
        bail!("`{compiler}` cannot build {}:\n{output_text}", output.display());
    }
    fs::rename(&new, output)?;
    Ok(output.to_owned())
}

fn is_fresh(output: &Path, files: &[PathBuf]) -> Result<bool> {
    let Ok(built) = fs::metadata(output).and_then(|metadata| metadata.modified()) else {
        return Ok(false);
    };
    let mut inputs = files.to_vec();
    for folder in [sources(), sources().join("include")] {
        for entry in fs::read_dir(folder)? {
            inputs.push(entry?.path());
        }
    }
    for input in inputs {
        let changed = fs::metadata(&input)
            .and_then(|metadata| metadata.modified())
            .with_context(|| format!("cannot read {}", input.display()))?;
        if changed > built {
            return Ok(false);
        }
    }
    Ok(true)
}
