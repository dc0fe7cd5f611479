//! The functions and libraries of CUDA that the libraries of an installed PyTorch need.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use object::elf;
use object::read::elf::{Dyn as _, ElfFile64};
use object::{Endianness, Object as _, ObjectSymbol as _, ReadCache};

use crate::DryRunError;

/// The functions and libraries of CUDA that a set of libraries needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imports {
    /// Names of libraries (`DT_NEEDED`).
    pub libraries: BTreeSet<String>,
    /// Names of functions.
    pub functions: BTreeSet<String>,
}

/// Libraries that are asked for by name while the program runs.
const ASKED: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];

/// Starts of the names of NVIDIA's functions; an upper-case letter or an underscore follows the short ones.
const PREFIXES: [&str; 19] = [
    "__cuda",
    "cuda",
    "cublasLt",
    "cublas",
    "cudnn",
    "cufft",
    "cusparseLt",
    "cusparse",
    "cusolver",
    "curand",
    "cupti",
    "nvrtc",
    "nvJitLink",
    "nvml",
    "nvshmemx",
    "nvshmem",
    "pnccl",
    "nccl",
    "cu",
];

/// Whether a function is one of NVIDIA's libraries, by its name.
fn is_of_cuda(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| {
        let Some(rest) = name.strip_prefix(prefix) else { return false };
        let next = rest.chars().next();
        match *prefix {
            "nvshmem" | "nvshmemx" | "curand" | "cupti" => {
                next.is_some_and(|next| next.is_ascii_uppercase() || next == '_' || next == 'i')
            }
            _ => next.is_some_and(|next| next.is_ascii_uppercase()),
        }
    })
}

/// Whether a library is one of NVIDIA's, by its name.
fn is_library_of_cuda(name: &str) -> bool {
    let stem = name.split(".so").next().unwrap_or(name);
    ["libcu", "libnv", "libnccl"].iter().any(|prefix| stem.starts_with(prefix))
}

/// The functions that a library needs, and the functions that the library has.
#[derive(Debug, Default)]
struct LibrarySymbols {
    needed: Vec<String>,
    undefined: Vec<String>,
    defined: Vec<String>,
}

fn read(path: &Path) -> Result<LibrarySymbols, DryRunError> {
    let file = File::open(path).map_err(DryRunError::file(path))?;
    let wrong =
        |error: object::Error| DryRunError::Library { path: path.to_owned(), text: error.to_string() };
    let cache = ReadCache::new(file);
    let elf: ElfFile64<'_, Endianness, _> = ElfFile64::parse(&cache).map_err(wrong)?;
    let mut found = LibrarySymbols::default();
    for symbol in elf.dynamic_symbols() {
        let name = symbol.name().map_err(wrong)?.to_owned();
        if symbol.is_undefined() {
            // A weak symbol that no library defines is null, and the library that uses the symbol checks for
            // that.
            if !symbol.is_weak() {
                found.undefined.push(name);
            }
        } else {
            found.defined.push(name);
        }
    }
    let endian = elf.endian();
    let sections = elf.elf_section_table();
    if let Some((entries, strings)) = sections.dynamic(endian, &cache).map_err(wrong)? {
        let strings = sections.strings(endian, &cache, strings).map_err(wrong)?;
        for entry in
            entries.iter().filter(|entry| i64::from(entry.tag32(endian).unwrap_or(0)) == elf::DT_NEEDED)
        {
            let name = entry.string(endian, strings).map_err(wrong)?;
            found.needed.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(found)
}

/// The functions that a library has.
///
/// # Errors
///
/// A file that is not a shared library.
pub fn defined(path: &Path) -> Result<BTreeSet<String>, DryRunError> {
    Ok(read(path)?.defined.into_iter().collect())
}

impl Imports {
    /// What these libraries need together, without the functions that they have themselves.
    ///
    /// # Errors
    ///
    /// A file that is not a shared library.
    pub fn of(libraries: &[PathBuf]) -> Result<Self, DryRunError> {
        let mut imports = Self::default();
        let mut own = BTreeSet::new();
        for path in libraries {
            let found = read(path)?;
            imports.libraries.extend(found.needed.into_iter().filter(|name| is_library_of_cuda(name)));
            imports.functions.extend(found.undefined.into_iter().filter(|name| is_of_cuda(name)));
            own.extend(found.defined);
        }
        imports.functions.retain(|name| !own.contains(name));
        if !imports.libraries.is_empty() {
            imports.libraries.extend(ASKED.map(str::to_owned));
        }
        Ok(imports)
    }
}

/// The shared libraries of a folder, by name.
pub(crate) fn libraries_in(folder: &Path) -> Result<Vec<PathBuf>, DryRunError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(DryRunError::file(folder))? {
        let path = entry.map_err(DryRunError::file(folder))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.contains(".so") && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{is_library_of_cuda, is_of_cuda};

    #[test]
    fn nvidias_names_are_known() {
        for name in [
            "cudaMalloc",
            "cuMemMap",
            "__cudaLaunchKernel",
            "cublasLtMatmul",
            "ncclSend",
            "nvshmemi_init_thread",
            "nvmlInit_v2",
        ] {
            assert!(is_of_cuda(name), "{name}");
        }
        for name in
            ["curl_easy_init", "cuddle", "culprit", "current", "ncclone", "malloc", "_ZN4c10cudaE", "cublas"]
        {
            assert!(!is_of_cuda(name), "{name}");
        }
        assert!(is_library_of_cuda("libcudart.so.13") && is_library_of_cuda("libnccl.so.2"));
        assert!(!is_library_of_cuda("libc.so.6") && !is_library_of_cuda("libgomp.so.1"));
    }
}
