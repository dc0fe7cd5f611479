//! Other packages beside PyTorch whose libraries need CUDA's: bitsandbytes, flash-attn and others.

use std::fs;
use std::path::{Path, PathBuf};

use crate::symbols::Imports;

/// Folders of a package that are searched: `package/lib/x.so`, `package/backends/cuda/x.so`.
const DEPTH: u32 = 3;
/// Packages that are not searched: PyTorch's own libraries are read by their names, NVIDIA's are the ones
/// that the stand-in replaces, Triton compiles for a GPU, and those of `numpy` need nothing of CUDA.
const SKIPPED_PACKAGES: [&str; 4] = ["torch", "nvidia", "triton", "numpy"];

/// The shared libraries of the packages in this folder, by name; what cannot be read is left out.
pub(crate) fn libraries_beside(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.ends_with(".dist-info") && !SKIPPED_PACKAGES.contains(&name.as_str()) {
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

/// Adds the functions of CUDA that these libraries need, where they need the same libraries of CUDA as
/// PyTorch: libraries for another release of CUDA are not loaded. A file that is not a shared library of this
/// system is left out.
pub(crate) fn add_imports(imports: &mut Imports, libraries: &[PathBuf]) {
    let all = libraries.iter().filter_map(|path| Imports::of(std::slice::from_ref(path)).ok());
    for found in all {
        merge(imports, found);
    }
}

fn merge(imports: &mut Imports, found: Imports) {
    let is_same = |name: &String| name.starts_with("libcudart.so") && imports.libraries.contains(name);
    if found.libraries.iter().any(is_same) {
        imports.libraries.extend(found.libraries);
        imports.functions.extend(found.functions);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{add_imports, libraries_beside, merge};
    use crate::symbols::Imports;

    fn imports(libraries: &[&str], functions: &[&str]) -> Imports {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Imports { libraries: set(libraries), functions: set(functions) }
    }

    #[test]
    fn packages_beside_pytorch_are_looked_into() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let deep = folder.join("quantized/lib");
        for folder in [&deep, &folder.join("torch/lib"), &folder.join("quantized-1.dist-info")] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("a.so"), "no library").unwrap();
        }
        fs::write(folder.join("single.so"), "").unwrap();
        let found = libraries_beside(folder);
        assert_eq!(found, [deep.join("a.so"), folder.join("single.so")]);
        let mut all = imports(&["libcudart.so.13"], &[]);
        add_imports(&mut all, &found);
        assert_eq!(all, imports(&["libcudart.so.13"], &[]), "what cannot be read is left out");
    }

    #[test]
    fn those_for_another_release_of_cuda_are_left_out() {
        let mut all = imports(&["libcudart.so.13"], &["cudaMalloc"]);
        merge(&mut all, imports(&["libcudart.so.12"], &["cudaOld"]));
        merge(&mut all, imports(&["libcublas.so.13"], &["cublasOnly"]));
        assert_eq!(all, imports(&["libcudart.so.13"], &["cudaMalloc"]));
        merge(&mut all, imports(&["libcudart.so.13", "libnpp.so.13"], &["cudaMemPrefetchAsync"]));
        let both = ["cudaMalloc", "cudaMemPrefetchAsync"];
        assert_eq!(all, imports(&["libcudart.so.13", "libnpp.so.13"], &both));
    }
}
