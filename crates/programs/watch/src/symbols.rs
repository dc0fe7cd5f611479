//! Where PyTorch's native caching allocator is in this process, by the symbols of its library.

use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSymbol as _};

use crate::JobError;

/// The library that has the allocator.
const LIBRARY: &str = "libc10_cuda.so";
/// The pointer to the allocator in use.
const ALLOCATOR: &str = "_ZN3c104cuda20CUDACachingAllocator9allocatorE";
/// The beginning of the names of the native allocator's functions.
const NATIVE: &str = "_ZN3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocator";

/// Addresses in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbols {
    /// Of the pointer to the allocator.
    pub(crate) allocator: usize,
    /// Of `attachAllocatorTraceTracker`.
    pub(crate) attach: usize,
    /// Of `raw_alloc`.
    pub(crate) raw_alloc: usize,
    /// Of `raw_delete`.
    pub(crate) raw_delete: usize,
}

impl Symbols {
    /// Finds them in the loaded library.
    pub(crate) fn find() -> Result<Self, JobError> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let (base, path) = loaded(&maps).ok_or(JobError::NoLibrary)?;
        Self::of_file(&path, base)
    }

    /// Finds them in a file that is loaded at `base`.
    fn of_file(path: &Path, base: usize) -> Result<Self, JobError> {
        let bytes = std::fs::read(path).map_err(|_error| JobError::NoLibrary)?;
        let file: ElfFile64<'_, Endianness> =
            ElfFile64::parse(&*bytes).map_err(|_error| JobError::NoLibrary)?;
        let mut found = Self::default();
        for symbol in file.symbols() {
            let (Ok(name), address) = (symbol.name(), symbol.address()) else { continue };
            let place = match (name, name.strip_prefix(NATIVE)) {
                (ALLOCATOR, _) => &mut found.allocator,
                (_, Some("9raw_allocEm")) => &mut found.raw_alloc,
                (_, Some("10raw_deleteEPv")) => &mut found.raw_delete,
                (_, Some(rest)) if rest.starts_with("27attachAllocatorTraceTracker") => &mut found.attach,
                _ => continue,
            };
            *place = usize::try_from(address).ok().filter(|address| *address > 0).map_or(0, |at| base + at);
        }
        let all = [found.allocator, found.attach, found.raw_alloc, found.raw_delete];
        if all.contains(&0) { Err(JobError::NoSymbols) } else { Ok(found) }
    }
}

/// Where the library begins, and its file, by the lines of `/proc/self/maps`.
fn loaded(maps: &str) -> Option<(usize, PathBuf)> {
    let line = maps.lines().find(|line| line.ends_with(&format!("/{LIBRARY}")))?;
    let (range, rest) = line.split_once(' ')?;
    let base = usize::from_str_radix(range.split_once('-')?.0, 16).ok()?;
    let path = rest.get(rest.find('/')?..)?;
    Some((base, PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_in_the_map() {
        let maps = "55d0-55d1 r--p 00000000 08:01 12 /usr/bin/python3\n\
                    7f01a000-7f01b000 r--p 00000000 08:01 13   /a b/torch/lib/libc10_cuda.so\n\
                    7f01b000-7f01c000 r-xp 00001000 08:01 13   /a b/torch/lib/libc10_cuda.so\n";
        let wanted = (0x7f01_a000, PathBuf::from("/a b/torch/lib/libc10_cuda.so"));
        assert_eq!(loaded(maps), Some(wanted));
        assert_eq!(loaded("7f-80 r--p 0 08:01 13 /lib/libc.so.6\n"), None);
    }

    #[test]
    fn a_file_without_the_symbols_is_refused() {
        let own = std::env::current_exe().unwrap();
        assert!(matches!(Symbols::of_file(&own, 0), Err(JobError::NoSymbols)));
        assert!(matches!(Symbols::of_file(Path::new("/nothing"), 0), Err(JobError::NoLibrary)));
    }
}
