//! Makes the files that a browser loads of one of the page's programs: `blockyard-bindgen PROGRAM.wasm FOLDER`.
//! With `--parts` the program is cut into parts, which are fetched when they are shown.
//!
//! It is a separate program because its libraries take most of a minute to compile: `cargo xtask` starts
//! without them, and they are compiled while the page is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use wasm_bindgen_cli_support::Bindgen;
use wasm_split_cli_support::Options;

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (wasm, folder, has_parts) = match arguments.as_slice() {
        [wasm, folder] => (wasm, folder, false),
        [wasm, folder, option] if option == Path::new("--parts") => (wasm, folder, true),
        _ => bail!("usage: blockyard-bindgen PROGRAM.wasm FOLDER [--parts]"),
    };
    let name = wasm.file_stem().and_then(|name| name.to_str()).context("the program has a name")?;
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let whole = if has_parts {
        let whole = cut(wasm, name, folder)?;
        link_parts(folder, name)?;
        whole
    } else {
        wasm.clone()
    };
    Bindgen::new()
        .input_path(&whole)
        .web(true)
        .and_then(|bindgen| {
            bindgen
                .typescript(false)
                .remove_name_section(true)
                .remove_producers_section(true)
                // Parts share the memory and the table of the program.
                .keep_lld_exports(has_parts)
                .generate(folder)
        })
        .with_context(|| format!("cannot make bindings for {}", wasm.display()))?;
    if has_parts {
        hand_over(folder, name)?;
    }
    Ok(())
}

/// Cuts the program: the parts go into `folder`, the rest of the program beside it. Returns the path of the
/// rest.
fn cut(wasm: &Path, name: &str, folder: &Path) -> Result<PathBuf> {
    let main = folder.with_extension("wasm");
    let bytes = fs::read(wasm).with_context(|| format!("{} was not built", wasm.display()))?;
    let (link_name, main_module) = (format!("./{name}-parts.js"), format!("./{name}.js"));
    let mut options = Options::new(&bytes);
    options.output_dir = folder;
    options.main_out_path = &main;
    options.link_name = &link_name;
    options.main_module = &main_module;
    wasm_split_cli_support::transform(options)
        .map_err(|error| anyhow!("cannot cut {}: {error:#}", wasm.display()))?;
    Ok(main)
}

/// Names the parts after the page's program, and changes the script that fetches them: it fetches parts from
/// the page's folder, whatever content type the server gives them. The page's script passes the program to
/// this script instead of being imported by it, because the modules of a page that is one HTML file must not
/// import each other in a circle.
fn link_parts(folder: &Path, program: &str) -> Result<()> {
    let path = folder.join(format!("{program}-parts.js"));
    let mut script = fs::read_to_string(&path)?;
    let mut replace = |old: &str, new: &str| {
        ensure!(script.contains(old), "{} has no `{old}`", path.display());
        script = script.replace(old, new);
        Ok(())
    };
    replace(
        &format!("import {{ initSync }} from \"./{program}.js\";"),
        "let initSync;\nexport const link = (program) => { initSync = program; };",
    )?;
    replace(
        "(WebAssembly.instantiateStreaming(src, imports))",
        "(WebAssembly.instantiate(await (await src).arrayBuffer(), imports))",
    )?;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name());
    }
    names.sort();
    for name in names {
        let name = name.to_string_lossy();
        if let Some(part) = name.strip_prefix("split_").or_else(|| name.ends_with(".wasm").then_some(&*name))
        {
            let renamed = format!("{program}-{}", part.replace('_', "-"));
            replace(&format!("new URL(\"./{name}\", import.meta.url)"), &format!("\"./{renamed}\""))?;
            let part = fs::read(folder.join(&*name))?;
            let plain =
                without_custom_sections(&part).with_context(|| format!("{name} is not WebAssembly"))?;
            fs::write(folder.join(renamed), plain)?;
            fs::remove_file(folder.join(&*name))?;
        }
    }
    ensure!(!script.contains("import.meta"), "{} finds its parts in another way", path.display());
    fs::write(&path, script)?;
    Ok(())
}

/// Makes the page's script pass its program to the script that fetches parts.
fn hand_over(folder: &Path, program: &str) -> Result<()> {
    let path = folder.join(format!("{program}.js"));
    let script = fs::read_to_string(&path)?;
    let link = format!("import {{ link }} from \"./{program}-parts.js\";\nlink(initSync);\n");
    fs::write(&path, format!("{script}\n{link}")).with_context(|| format!("cannot write {}", path.display()))
}

/// The module without the names of its functions and other sections that only tools read, which are a quarter
/// of a part's bytes. `None` if the bytes are not a module.
fn without_custom_sections(module: &[u8]) -> Option<Vec<u8>> {
    const CUSTOM: u8 = 0;
    let (header, mut rest) = module.split_at_checked(8)?;
    let mut plain = header.to_vec();
    while let Some((&kind, after)) = rest.split_first() {
        // The length is encoded with seven bits in a byte, the lowest bits first.
        let last = after.iter().position(|byte| byte & 0x80 == 0)?;
        let digits = after.get(..=last)?.iter().rev();
        let length = digits.fold(0, |length: usize, digit| length << 7 | usize::from(digit & 0x7f));
        let (section, next) = rest.split_at_checked(2 + last + length)?;
        if kind != CUSTOM {
            plain.extend_from_slice(section);
        }
        rest = next;
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_loses_its_names_and_nothing_else() {
        let header = b"\0asm\x01\0\0\0";
        let types = [1, 3, 1, 0x60, 0];
        // A length of two bytes, as linkers write it.
        let names = [&[0, 0x86, 0][..], &[4], b"name", &[7]].concat();
        let whole = [header, &names[..], &types[..], &names[..]].concat();
        assert_eq!(without_custom_sections(&whole), Some([header, &types[..]].concat()));
        assert_eq!(without_custom_sections(&whole[..whole.len() - 1]), None);
    }
}
