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
            let Some(place) = found.place(name) else { continue };
            *place = usize::try_from(address).ok().filter(|address| *address > 0).map_or(0, |at| base + at);
        }
        if [found.allocator, found.attach].contains(&0) { Err(JobError::NoSymbols) } else { Ok(found) }
    }

    /// The place of the address of a symbol, if it is one of these.
    fn place(&mut self, name: &str) -> Option<&mut usize> {
        match (name, name.strip_prefix(NATIVE)) {
            (ALLOCATOR, _) => Some(&mut self.allocator),
            (_, Some(rest)) if rest.starts_with("27attachAllocatorTraceTracker") => Some(&mut self.attach),
            _ => None,
        }
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
    use std::collections::BTreeMap;
    use std::process::Command;
    use std::{env, fs};

    use super::*;

    const HEAD: &str = "\
# What watch needs of PyTorch's library and of the header with the entries of the trace, by release.
# `cargo xtask update watch --python PYTHON` adds what this Python has. In the place of a Python, the folder
# torch of an unpacked wheel.
";

    const FIND: &str =
        "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])";

    /// The folder of PyTorch: of a Python, or the folder itself.
    fn torch_folder(place: &str) -> PathBuf {
        if Path::new(place).is_dir() {
            return place.into();
        }
        let output = Command::new(place).args(["-c", FIND]).output().unwrap();
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    }

    /// The names that lines of a header end with, from one word up to another.
    fn members(header: &str, from: &str, to: &str) -> String {
        let part = header.split_once(from).unwrap().1.split_once(to).unwrap().0;
        let code = part.lines().map(|line| line.split("//").next().unwrap().trim());
        let last = code.filter_map(|line| line.trim_end_matches([',', ';']).split(' ').next_back());
        let names = last.map(|name| name.trim_end_matches("{}"));
        names.filter(|name| name.starts_with(char::is_alphabetic)).collect::<Vec<_>>().join(" ")
    }

    /// A release with what is found of it.
    fn found(folder: &Path) -> (String, String) {
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let version = read("version.py");
        let version = version.split("__version__ = '").nth(1).unwrap().split('\'').next().unwrap();
        let library = folder.join("lib").join(LIBRARY);
        Symbols::of_file(&library, 0).unwrap();
        let bytes = fs::read(library).unwrap();
        let file: ElfFile64<'_, Endianness> = ElfFile64::parse(&*bytes).unwrap();
        let mut names: Vec<&str> = file.symbols().filter_map(|symbol| symbol.name().ok()).collect();
        names.retain(|name| Symbols::default().place(name).is_some());
        names.sort_unstable();
        let header = read("include/c10/core/CachingDeviceAllocator.h");
        let entry = header.split_once("struct TraceEntry {").unwrap().1;
        let actions = members(entry, "enum Action {", "\n  };");
        let fields = members(entry, "time_.approx_t_ = time;", "\n};");
        let text = format!("{}\nactions {actions}\nfields {fields}\n", names.join("\n"));
        (format!("release {version} {:?}", file.architecture()), text)
    }

    #[test]
    fn known_releases_have_what_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/releases.txt");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let blocks = text.split("\n\n").skip(1).filter_map(|block| block.trim().split_once('\n'));
        let mut releases: BTreeMap<String, String> =
            blocks.map(|(release, facts)| (release.to_owned(), format!("{facts}\n"))).collect();
        let is_update = env::var_os("UPDATE").is_some();
        for place in env::var("TORCH").iter().flat_map(|places| places.split(':')) {
            let (release, facts) = found(&torch_folder(place));
            let known = releases.insert(release.clone(), facts.clone());
            assert!(is_update || known.is_none_or(|known| known == facts), "{release}: {facts}");
        }
        if is_update {
            let blocks = releases.iter().map(|(release, facts)| format!("\n{release}\n{facts}"));
            fs::write(&path, format!("{HEAD}{}", blocks.collect::<String>())).unwrap();
        }
        assert!(!releases.is_empty());
        for (release, facts) in &releases {
            let line = |name: &str| facts.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            // By their numbers.
            let actions = "ALLOC FREE_REQUESTED FREE_COMPLETED SEGMENT_ALLOC SEGMENT_FREE SEGMENT_MAP \
                           SEGMENT_UNMAP SNAPSHOT OOM";
            assert!(line("actions ").starts_with(actions), "{release}");
            let fields = "action_ device_ addr_ context_ stream_ size_ mempool_ time_ ";
            assert!(line("fields ").starts_with(fields), "{release}");
            let mut symbols = Symbols::default();
            facts.lines().for_each(|name| symbols.place(name).into_iter().for_each(|place| *place = 1));
            assert_eq!(symbols, Symbols { allocator: 1, attach: 1 }, "{release}");
        }
    }

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
