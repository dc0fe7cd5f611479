//! Builds our C++ sources with the system's compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The folder of our C++ sources; its `include` has the headers that they and the wheel's headers include.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("native")
}

/// Builds our CUDA runtime below `target`, cargo's target folder, unless it exists and is up to date.
///
/// Returns the path of `libcudart.so.13`; its folder goes into `LD_LIBRARY_PATH` or a run path. `standin.h`,
/// in `native/include`, declares the functions by which a program controls the runtime.
///
/// # Errors
///
/// When no C++ compiler is installed, or it fails.
pub fn build_cudart(target: &Path) -> Result<PathBuf> {
    let map = sources().join("cudart.map");
    let script = format!("-Wl,--version-script={}", map.display());
    compile(
        &[sources().join("cudart.cpp")],
        &["-shared", "-fPIC", "-Wl,-soname,libcudart.so.13", &script],
        &target.join("oracle/libcudart.so.13"),
    )
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
