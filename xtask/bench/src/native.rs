//! PyTorch's own library and our C ABI, called by one loop in C++ through function pointers.
#![expect(unsafe_code, reason = "two foreign libraries are loaded and called")]

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use blockyard_measure::{Operation, OperationList, stream_handle};
use blockyard_rules::Release;
use libloading::Library;
use libloading::os::unix::{Library as UnixLibrary, RTLD_GLOBAL, RTLD_NOW};

use crate::suite::CAPACITY;

/// How many numbers `memory_stats()` has.
pub const STATS: usize = 122;

/// The struct `Contender` of `cpp/contenders.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Functions {
    this: *mut c_void,
    allocate: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> usize>,
    free: Option<unsafe extern "C" fn(*mut c_void, usize)>,
    record_stream: Option<unsafe extern "C" fn(*mut c_void, usize, usize)>,
    advance: Option<unsafe extern "C" fn(*mut c_void, usize)>,
    advance_all: Option<unsafe extern "C" fn(*mut c_void)>,
    empty_cache: Option<unsafe extern "C" fn(*mut c_void)>,
    reset_stats: Option<unsafe extern "C" fn(*mut c_void)>,
    stats: Option<unsafe extern "C" fn(*mut c_void, *mut i64)>,
    allocate_on_default: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> usize>,
}

impl Functions {
    const NONE: Self = Self {
        this: ptr::null_mut(),
        allocate: None,
        free: None,
        record_stream: None,
        advance: None,
        advance_all: None,
        empty_cache: None,
        reset_stats: None,
        stats: None,
        allocate_on_default: None,
    };
}

/// The struct `ReplayInput` of `cpp/contenders.cpp`.
#[repr(C)]
struct ReplayInput {
    ops: *const Operation,
    count: usize,
    streams: *const usize,
    slots: *mut usize,
    base: usize,
}

type Loop = unsafe extern "C" fn(*const Functions, *const ReplayInput, u32, *mut u64) -> i32;

/// The libraries, loaded.
#[derive(Debug)]
pub struct Libraries {
    warm: Loop,
    timed: Loop,
    error: unsafe extern "C" fn() -> *const c_char,
    ours: Functions,
    theirs: Functions,
    floor: Functions,
    /// Functions of these are in use as long as this value lives.
    _loaded: (UnixLibrary, Library, Library),
}

/// One of the compared allocators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Our allocator behind its C ABI.
    Ours,
    /// PyTorch's library.
    Theirs,
    /// A bare offset-allocator behind our lock; it can allocate and free, and no more.
    Floor,
}

impl Side {
    /// Our allocator and PyTorch's, which are compared with each other.
    pub const BOTH: [Self; 2] = [Self::Ours, Self::Theirs];
}

// SAFETY: both allocators have locks; everything else in the value is never written.
unsafe impl Sync for Libraries {}

impl Libraries {
    /// Builds missing libraries below `target` and loads all: the fake CUDA runtime, PyTorch's library, the
    /// loop, and our C ABI, which is beside the running program.
    ///
    /// # Errors
    ///
    /// When the wheel cannot be fetched, there is no C++ compiler, or a library does not load.
    pub fn load(target: &Path) -> Result<Self> {
        let wheel = blockyard_oracle::wheel(target, Release::V2_11)?;
        let cudart = blockyard_oracle::build_cudart(target, Release::V2_11)?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("cpp/contenders.cpp");
        let [include, libraries] = [("-I", &wheel.include), ("-L", &wheel.libraries)]
            .map(|(option, folder)| format!("{option}{}", folder.display()));
        let run_path = format!("-Wl,-rpath,{}", wheel.libraries.display());
        let quiet = ["-Wno-pmf-conversions", "-Wno-unused-parameter", "-Wl,--allow-shlib-undefined"];
        let options =
            [&["-shared", "-fPIC", &include], &quiet[..], &[&libraries, "-lc10", "-lc10_cuda", &run_path]];
        let contenders =
            blockyard_oracle::compile(&[source], &options.concat(), &target.join("bench/libcontenders.so"))?;
        let abi = std::env::current_exe()?.with_file_name("libblockyard_bench_abi.so");

        // The fake CUDA runtime first and for all to see: PyTorch's library asks for it by its name. SAFETY:
        // these libraries are built from our sources, except for PyTorch's, whose start runs constructors
        // only.
        let (cudart, contenders, abi) = unsafe {
            (
                UnixLibrary::open(Some(&cudart), RTLD_NOW | RTLD_GLOBAL)
                    .with_context(|| format!("cannot load {}", cudart.display()))?,
                Library::new(&contenders).with_context(|| format!("cannot load {}", contenders.display()))?,
                Library::new(&abi).with_context(|| {
                    format!("cannot load {}: `cargo xtask bench` builds it", abi.display())
                })?,
            )
        };
        // SAFETY: the types are those of the functions' definitions.
        unsafe {
            let warm = *contenders.get::<Loop>(b"replay_warm")?;
            let timed = *contenders.get::<Loop>(b"replay_timed")?;
            let error = *contenders.get(b"replay_error")?;
            let theirs = theirs(&cudart, &contenders)?;
            let ours = ours(&abi)?;
            let floor = floor(&abi)?;
            Ok(Self { warm, timed, error, ours, theirs, floor, _loaded: (cudart, contenders, abi) })
        }
    }

    fn functions(&self, side: Side) -> &Functions {
        match side {
            Side::Ours => &self.ours,
            Side::Theirs => &self.theirs,
            Side::Floor => &self.floor,
        }
    }

    /// All counters, in the order of the C ABI.
    ///
    /// # Errors
    ///
    /// When the contender lacks the function.
    pub fn stats(&self, side: Side) -> Result<[i64; STATS]> {
        let functions = self.functions(side);
        let stats = functions.stats.context("the contender has no statistics")?;
        let mut values = [0; STATS];
        // SAFETY: the function writes 122 numbers.
        unsafe { stats(functions.this, values.as_mut_ptr()) };
        Ok(values)
    }

    /// Releases all memory to the device and resets the counters.
    ///
    /// # Errors
    ///
    /// When the contender lacks a function.
    pub fn clear(&self, side: Side) -> Result<()> {
        let functions = self.functions(side);
        let empty_cache = functions.empty_cache.context("the contender cannot empty its cache")?;
        let reset_stats = functions.reset_stats.context("the contender cannot reset its statistics")?;
        // SAFETY: both take the allocator only.
        unsafe {
            empty_cache(functions.this);
            reset_stats(functions.this);
        }
        Ok(())
    }

    /// The address of the next segment of an empty device. By the rule of the fake CUDA runtime and of
    /// `VirtualDevice`, it is 2 MiB above a segment of 2 MiB.
    fn next_base(&self, side: Side) -> Result<usize> {
        const SEGMENT: usize = 2 << 20;
        let functions = self.functions(side);
        let (allocate, free) = functions.allocate.zip(functions.free).context("the contender is empty")?;
        // SAFETY: the address is freed by the allocator that returned it.
        let addr = unsafe {
            let addr = allocate(functions.this, 512, 0);
            free(functions.this, addr);
            addr
        };
        self.clear(side)?;
        Ok(addr + SEGMENT)
    }
}

unsafe fn theirs(cudart: &UnixLibrary, contenders: &Library) -> Result<Functions> {
    let mut functions = Functions::NONE;
    // SAFETY: the types are those of the functions' definitions; `functions` is `Contender` of the C++ side.
    unsafe {
        let set_total = cudart.get::<unsafe extern "C" fn(u64)>(b"standin_set_total")?;
        set_total(CAPACITY);
        let fill =
            contenders.get::<unsafe extern "C" fn(*mut Functions) -> *const c_char>(b"pytorch_contender")?;
        let error = fill(&raw mut functions);
        if !error.is_null() {
            bail!("PyTorch's library does not start: {}", CStr::from_ptr(error).to_string_lossy());
        }
    }
    Ok(functions)
}

unsafe fn ours(abi: &Library) -> Result<Functions> {
    // SAFETY: the types are those of the functions' definitions, where `&Shared` is the pointer that `create`
    // returned.
    unsafe {
        let create = abi.get::<unsafe extern "C" fn(u64) -> *mut c_void>(b"blockyard_create")?;
        Ok(Functions {
            this: create(CAPACITY),
            allocate: Some(*abi.get(b"blockyard_allocate")?),
            free: Some(*abi.get(b"blockyard_free")?),
            record_stream: Some(*abi.get(b"blockyard_record_stream")?),
            advance: Some(*abi.get(b"blockyard_advance")?),
            advance_all: Some(*abi.get(b"blockyard_advance_all")?),
            empty_cache: Some(*abi.get(b"blockyard_empty_cache")?),
            reset_stats: Some(*abi.get(b"blockyard_reset_stats")?),
            stats: Some(*abi.get(b"blockyard_stats")?),
            allocate_on_default: None,
        })
    }
}

unsafe fn floor(abi: &Library) -> Result<Functions> {
    // SAFETY: as for `ours`.
    unsafe {
        let create = abi.get::<unsafe extern "C" fn(u64) -> *mut c_void>(b"floor_create")?;
        Ok(Functions {
            this: create(CAPACITY),
            allocate: Some(*abi.get(b"floor_allocate")?),
            free: Some(*abi.get(b"floor_free")?),
            ..Functions::NONE
        })
    }
}

/// Replays of one trace through one contender.
#[derive(Debug)]
pub struct Pass<'a> {
    libraries: &'a Libraries,
    side: Side,
    trace: &'a OperationList,
    streams: Vec<usize>,
    slots: Vec<usize>,
    base: usize,
}

// SAFETY: the pointers of the libraries are to allocators that have locks.
unsafe impl Send for Pass<'_> {}

impl<'a> Pass<'a> {
    /// The contender, empty, before the trace's first operation.
    ///
    /// # Errors
    ///
    /// When the contender lacks a function.
    pub fn begin(libraries: &'a Libraries, side: Side, trace: &'a OperationList) -> Result<Self> {
        libraries.clear(side)?;
        let base = libraries.next_base(side)?;
        Ok(Self::beside(libraries, side, trace, base))
    }

    /// A pass through the same contender for another thread; its addresses count from `base`.
    #[must_use]
    pub fn beside(libraries: &'a Libraries, side: Side, trace: &'a OperationList, base: usize) -> Self {
        let handle = |stream| usize::try_from(stream_handle(stream)).unwrap_or(0);
        Self {
            libraries,
            side,
            trace,
            streams: (0..trace.streams).map(handle).collect(),
            slots: vec![0; trace.slots as usize],
            base,
        }
    }

    /// Replays the trace `times` times in a function that valgrind does not count; returns the hash of the
    /// last replay's addresses.
    ///
    /// # Errors
    ///
    /// When an allocation fails.
    pub fn warm(&mut self, times: u32) -> Result<u64> {
        self.run(self.libraries.warm, times).map(|(hash, _)| hash)
    }

    /// Replays the trace `times` times; returns the hash of the last replay's addresses, and the time.
    ///
    /// # Errors
    ///
    /// When an allocation fails.
    pub fn timed(&mut self, times: u32) -> Result<(u64, Duration)> {
        self.run(self.libraries.timed, times)
    }

    fn run(&mut self, run: Loop, times: u32) -> Result<(u64, Duration)> {
        let work = ReplayInput {
            ops: self.trace.operations.as_ptr(),
            count: self.trace.operations.len(),
            streams: self.streams.as_ptr(),
            slots: self.slots.as_mut_ptr(),
            base: self.base,
        };
        let mut functions = *self.libraries.functions(self.side);
        // A program with one stream calls the function without a stream.
        if self.trace.streams == 1 {
            functions.allocate = functions.allocate_on_default.or(functions.allocate);
        }
        let mut hash = 0;
        let begun = Instant::now();
        // SAFETY: `work` points at whole lists of this value, and the trace's slots and streams are within
        // them.
        let code = unsafe { run(&raw const functions, &raw const work, times, &raw mut hash) };
        let took = begun.elapsed();
        match code {
            0 => Ok((hash, took)),
            1 => bail!("{}: an allocation failed", self.trace.name),
            _ => {
                // SAFETY: the function returns a text of this thread that ends with a zero.
                let error = unsafe { CStr::from_ptr((self.libraries.error)()) };
                let first = error.to_string_lossy();
                bail!("{}: the library threw: {}", self.trace.name, first.lines().next().unwrap_or_default())
            }
        }
    }

    /// All counters of the contender.
    ///
    /// # Errors
    ///
    /// The errors of [`Libraries::stats`].
    pub fn stats(&self) -> Result<[i64; STATS]> {
        self.libraries.stats(self.side)
    }
}
