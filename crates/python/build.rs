//! Compiles the Python files of `lib` into the crate.
//!
//! The result is that of the macro `py_freeze` without the tables of lines, which are two fifths of what a
//! reader of the page loads: tracebacks show no line of the library. With `BLOCKYARD_SHOW_LIBRARY` tracebacks
//! show these lines, and the tables are kept.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use rustpython_compiler::{CodeObject, CompileOpts, Mode, compile};
use rustpython_compiler_core::bytecode::ConstantData;
use rustpython_compiler_core::frozen::{FrozenCodeObject, FrozenLib, FrozenModule};
use rustpython_compiler_core::marshal::serialize_code;

fn without_lines(code: &mut CodeObject) {
    code.linetable = Box::default();
    let stripped = code.constants.iter().cloned().map(|mut constant| {
        if let ConstantData::Code { code } = &mut constant {
            without_lines(code);
        }
        constant
    });
    code.constants = stripped.collect();
}

/// A block of LZ4, which the interpreter reads, that holds the bytes unpacked: the compression of the whole
/// page packs them better.
fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut block = u32::try_from(bytes.len())?.to_le_bytes().to_vec();
    // A length of 15 or more is continued in further bytes, of which the last is below 255.
    let more = bytes.len().checked_sub(15).ok_or("a module is longer than 15 bytes")?;
    block.push(0xf0);
    block.extend(std::iter::repeat_n(255, more / 255));
    block.push(u8::try_from(more % 255)?);
    block.extend(bytes);
    Ok(block)
}

/// The modules of a folder, each by its name.
fn modules(
    folder: &Path,
    parent: &str,
    keeps_lines: bool,
    found: &mut Vec<(String, FrozenModule<Vec<u8>>)>,
) -> Result<(), Box<dyn Error>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    for path in paths {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let child = if parent.is_empty() { stem.to_owned() } else { format!("{parent}.{stem}") };
        if path.is_dir() {
            modules(&path, &child, keeps_lines, found)?;
        } else if path.extension().is_some_and(|extension| extension == "py") {
            let package = stem == "__init__";
            let name = if package { parent.to_owned() } else { child };
            let source = fs::read_to_string(&path)?;
            let mut code = compile(&source, Mode::Exec, &name, CompileOpts::default())
                .map_err(|error| format!("{}: {error}", path.display()))?;
            if !keeps_lines {
                without_lines(&mut code);
            }
            let mut bytes = Vec::new();
            serialize_code(&mut bytes, &code);
            found.push((name, FrozenModule { code: FrozenCodeObject { bytes: unpacked(&bytes)? }, package }));
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=lib");
    println!("cargo::rerun-if-env-changed=BLOCKYARD_SHOW_LIBRARY");
    let mut found = Vec::new();
    modules(Path::new("lib"), "", env::var_os("BLOCKYARD_SHOW_LIBRARY").is_some(), &mut found)?;
    let library = FrozenLib::encode(found.iter().map(|(name, module)| {
        let code = FrozenCodeObject { bytes: module.code.bytes.as_slice() };
        (name.as_str(), FrozenModule { code, package: module.package })
    }));
    fs::write(Path::new(&env::var("OUT_DIR")?).join("library"), &library.bytes)?;
    Ok(())
}
