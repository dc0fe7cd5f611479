//! The library under test, loaded as PyTorch loads it, and processes in which its driver is a fake one.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use libloading::{Library, Symbol};

const IS_CHILD: &str = "BLOCKYARD_PLUGIN_CHILD";

/// Cargo's folder of this build.
fn target() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    this.parent().and_then(Path::parent).unwrap().to_owned()
}

/// The shared library that was built with these tests.
pub(crate) fn path() -> PathBuf {
    let name = "libblockyard_torch_plugin.so";
    let places = [target().join("deps").join(name), target().join(name)];
    places.into_iter().find(|place| place.exists()).unwrap()
}

/// A folder in which the fake driver is called as the driver is.
pub(crate) fn driver_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let built = target().join("examples/libfake_cuda.so");
        if !built.exists() {
            let profile = if target().ends_with("release") { "release" } else { "dev" };
            let arguments =
                ["build", "--package", "blockyard-tests", "--example", "fake_cuda", "--profile", profile];
            assert!(Command::new(env!("CARGO")).args(arguments).status().unwrap().success());
        }
        let folder = target().join("examples/fake_cuda_for_torch");
        std::fs::create_dir_all(&folder).unwrap();
        let link = folder.join("libcuda.so");
        let made = std::os::unix::fs::symlink(&built, &link);
        assert!(made.is_ok() || link.exists(), "{made:?}");
        folder
    })
}

/// A folder of its own for the files of a test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = target().join("torch-plugin-tests").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Whether this is the process in which the test is done.
pub(crate) fn is_child() -> bool {
    std::env::var_os(IS_CHILD).is_some()
}

/// Runs the test of that name again, in a process with these settings; its output is the answer.
pub(crate) fn run_again(name: &str, settings: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(IS_CHILD, "1");
    output_text(&with_driver(&mut command, settings))
}

/// Runs the command where the driver is the fake one, without the settings of this process.
pub(crate) fn with_driver(command: &mut Command, settings: &[(&str, &str)]) -> Output {
    command.env("LD_LIBRARY_PATH", driver_folder());
    command.env_remove("PYTORCH_CUDA_ALLOC_CONF").env_remove("PYTORCH_ALLOC_CONF");
    command.envs(settings.iter().copied()).output().unwrap()
}

/// What a process said that ended well.
pub(crate) fn output_text(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let text = format!("{out}\n{err}");
    assert!(output.status.success(), "{}: {text}", output.status);
    text
}

/// The library's functions.
pub(crate) struct Plugin(Library);

pub(crate) type Address = usize;

impl Plugin {
    pub(crate) fn load() -> Self {
        // SAFETY: loading it runs nothing.
        Self(unsafe { Library::new(path()) }.unwrap())
    }

    /// A function of that name, whose type the caller knows.
    pub(crate) fn function<F>(&self, name: &str) -> Symbol<'_, F> {
        // SAFETY: the types stand beside the functions' definitions.
        unsafe { self.0.get(name) }.unwrap()
    }

    pub(crate) fn malloc(&self, size: isize, stream: Address) -> Address {
        self.malloc_on(0, size, stream)
    }

    pub(crate) fn malloc_on(&self, device: c_int, size: isize, stream: Address) -> Address {
        self.function::<extern "C" fn(isize, c_int, Address) -> Address>("blockyard_malloc")(
            size, device, stream,
        )
    }

    pub(crate) fn free(&self, memory: Address, stream: Address) {
        self.function::<extern "C" fn(Address, isize, c_int, Address)>("blockyard_free")(
            memory, 0, 0, stream,
        );
    }

    pub(crate) fn record_stream(&self, memory: Address, stream: Address) {
        self.function::<extern "C" fn(Address, Address)>("blockyard_record_stream")(memory, stream);
    }

    pub(crate) fn empty_cache(&self) {
        assert_eq!(self.function::<extern "C" fn() -> c_int>("blockyard_empty_cache")(), 0);
    }

    pub(crate) fn stat(&self, key: &str) -> i64 {
        let stats = self.function::<extern "C" fn(c_int) -> *mut c_char>("blockyard_memory_stats")(0);
        assert!(!stats.is_null(), "{}", self.last_error());
        // SAFETY: it is a text of the library's, given back below.
        let text = unsafe { CStr::from_ptr(stats) }.to_str().unwrap().to_owned();
        self.function::<extern "C" fn(*mut c_char)>("blockyard_free_text")(stats);
        let rest = text.split_once(&format!("\"{key}\":")).unwrap().1;
        rest.split([',', '}']).next().unwrap().parse().unwrap()
    }

    pub(crate) fn record_start(&self) {
        assert_eq!(self.function::<extern "C" fn(c_int) -> c_int>("blockyard_record_start")(0), 0);
    }

    pub(crate) fn record_finish(&self, path: &Path) {
        type Finish = extern "C" fn(c_int, *const c_char, *const c_char, *const c_char) -> c_int;
        let path = CString::new(path.to_str().unwrap()).unwrap();
        let finish = self.function::<Finish>("blockyard_record_finish");
        let ended = finish(0, path.as_ptr(), c"test".as_ptr(), c"2.11.0".as_ptr());
        assert_eq!(ended, 0, "{}", self.last_error());
    }

    pub(crate) fn last_error(&self) -> String {
        let error = self.function::<extern "C" fn() -> *const c_char>("blockyard_last_error")();
        // SAFETY: it is a text of this thread's.
        unsafe { CStr::from_ptr(error) }.to_str().unwrap().to_owned()
    }
}

/// The driver itself, as PyTorch's runtime uses it.
pub(crate) struct Driver(Library);

impl Driver {
    /// Opens the driver with the context current on this thread.
    pub(crate) fn open() -> Self {
        // SAFETY: it is the fake driver.
        let driver = Self(unsafe { Library::new("libcuda.so") }.unwrap());
        let mut context = 0_usize;
        assert_eq!(driver.function::<extern "C" fn(u32) -> u32>("cuInit")(0), 0);
        let retain = driver.function::<extern "C" fn(*mut usize, c_int) -> u32>("cuDevicePrimaryCtxRetain");
        assert_eq!(retain(&raw mut context, 0), 0);
        assert_eq!(driver.function::<extern "C" fn(usize) -> u32>("cuCtxSetCurrent")(context), 0);
        driver
    }

    fn function<F>(&self, name: &str) -> Symbol<'_, F> {
        // SAFETY: the types are those of the driver's documentation.
        unsafe { self.0.get(name) }.unwrap()
    }

    pub(crate) fn create_stream(&self) -> Address {
        let mut stream = 0_u64;
        let create = self.function::<extern "C" fn(*mut u64, u32) -> u32>("cuStreamCreate");
        assert_eq!(create(&raw mut stream, 1), 0);
        usize::try_from(stream).unwrap()
    }
}

/// What C calls `void *`, and C++ `cudaStream_t`.
pub(crate) type Pointer = *mut c_void;
