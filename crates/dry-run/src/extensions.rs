//! Other packages beside PyTorch whose libraries want CUDA's: bitsandbytes, flash-attn and the like.

use std::fs;
use std::path::{Path, PathBuf};

use crate::symbols::Wanted;

/// Folders within a package that are looked into: `package/lib/x.so`, `package/backends/cuda/x.so`.
const DEPTH: u32 = 3;
/// Packages whose libraries are PyTorch's own matter, or NVIDIA's.
const OTHERS: [&str; 4] = ["torch", "nvidia", "triton", "numpy"];

/// The shared libraries of the packages in this folder, by name; what cannot be read is left out.
pub(crate) fn libraries_beside(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.ends_with(".dist-info") && !OTHERS.contains(&name.as_str()) {
            add(&path, DEPTH, &mut found);
        } else if is_shared(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn add(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if is_shared(&path) {
            found.push(path);
        } else if depth > 1 && path.extension().is_none() && path.is_dir() {
            add(&path, depth - 1, found);
        }
    }
}

fn is_shared(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "so")
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

/// Adds what these libraries want of CUDA's, where they want it of the same libraries as PyTorch: those for another release of CUDA are
/// not loaded. What is no shared library of this system is left out.
pub(crate) fn add_wanted(wanted: &mut Wanted, libraries: &[PathBuf]) {
    let own = wanted.libraries.clone();
    for path in libraries {
        let Ok(found) = Wanted::of(std::slice::from_ref(path)) else { continue };
        if found.libraries.iter().any(|name| name.starts_with("libcudart.so") && own.contains(name)) {
            wanted.libraries.extend(found.libraries);
            wanted.functions.extend(found.functions);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{add_wanted, libraries_beside};
    use crate::symbols::Wanted;
    use crate::{Library, write_library};

    #[test]
    fn packages_that_link_the_same_cuda_are_found() {
        let folder = std::env::temp_dir().join(format!("blockyard-extensions-{}", std::process::id()));
        let deep = folder.join("quantized/lib");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir_all(folder.join("torch/lib")).unwrap();
        for (path, needed) in [(deep.join("a.so"), "libcudart.so.13"), (deep.join("b.so"), "libcudart.so.12")]
        {
            // One that wants both libraries, so that nothing but the first tells them apart.
            let needed = [needed, "libcublas.so.99"];
            let library = Library { name: "x", needed: &needed, ..Library::default() };
            fs::write(path, write_library(&library).unwrap()).unwrap();
        }
        fs::write(folder.join("torch/lib/c.so"), "").unwrap();
        fs::write(deep.join("broken.so"), "no library").unwrap();
        let found = libraries_beside(&folder);
        assert_eq!(found, ["a.so", "b.so", "broken.so"].map(|name| deep.join(name)));
        let mut wanted = Wanted { libraries: ["libcudart.so.13".to_owned()].into(), ..Wanted::default() };
        add_wanted(&mut wanted, &found[1..]);
        assert_eq!(wanted.libraries.len(), 1);
        add_wanted(&mut wanted, &found);
        assert!(wanted.libraries.contains("libcublas.so.99"));
        fs::remove_dir_all(folder).unwrap();
    }
}
