//! Hooks of memory pools, memory fractions and base addresses, with values laid out as C++ does it.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::library::{Driver, Plugin, Pointer, is_child, run_again};

const MIB: isize = 1 << 20;

#[repr(C)]
#[derive(Clone, Copy)]
struct Pool(u64, u64);

/// A `std::function<bool(cudaStream_t)>` that accepts one stream.
#[repr(C)]
struct Function {
    data: [usize; 2],
    manager: extern "C" fn(*mut [usize; 2], *const [usize; 2], c_int) -> bool,
    invoker: extern "C" fn(*const [usize; 2], *mut Pointer) -> bool,
}

static COPIES: AtomicUsize = AtomicUsize::new(0);

extern "C" fn manage(to: *mut [usize; 2], from: *const [usize; 2], operation: c_int) -> bool {
    match operation {
        2 => {
            COPIES.fetch_add(1, Ordering::SeqCst);
            // SAFETY: the library passes its own copy and ours.
            unsafe { to.write(from.read()) }
        }
        3 => {
            COPIES.fetch_sub(1, Ordering::SeqCst);
        }
        other => panic!("operation {other}"),
    }
    false
}

extern "C" fn accepts(data: *const [usize; 2], stream: *mut Pointer) -> bool {
    // SAFETY: the library passes its copy and the stream.
    unsafe { (*stream).addr() == (*data)[0] }
}

type Begin = extern "C" fn(c_int, Pool, *const Function);
type End = extern "C" fn(c_int, Pool);
type Base = extern "C" fn(usize, *mut usize) -> usize;

fn base(plugin: &Plugin, memory: usize) -> (usize, usize) {
    let mut size = 0;
    let base = plugin.function::<Base>("blockyard_base_alloc")(memory, &raw mut size);
    (base, size)
}

#[test]
fn pools_take_what_their_filter_accepts() {
    if !is_child() {
        run_again("hooks::pools_take_what_their_filter_accepts", &[]);
        return;
    }
    let stream = Driver::open().create_stream();
    let plugin = Plugin::load();
    let before = plugin.malloc(512, stream);
    plugin.free(before, stream);
    let pool = Pool(3, 0);
    let filter = Function { data: [stream, 0], manager: manage, invoker: accepts };
    plugin.function::<Begin>("blockyard_begin_allocate_to_pool")(0, pool, &raw const filter);
    assert_eq!(COPIES.load(Ordering::SeqCst), 1);
    let inside = plugin.malloc(512, stream);
    let outside = plugin.malloc(512, 0);
    assert_ne!(base(&plugin, inside).0, base(&plugin, before).0);
    assert_ne!(base(&plugin, inside).0, base(&plugin, outside).0);
    // A stream that it does not accept goes on using the default pool.
    assert_eq!(plugin.stat("segment.all.current"), 3);
    plugin.function::<End>("blockyard_end_allocate_to_pool")(0, pool);
    assert_eq!(COPIES.load(Ordering::SeqCst), 0);
    assert_eq!(plugin.malloc(512, stream), before);
    plugin.free(inside, stream);
    plugin.empty_cache();
    assert_eq!(plugin.stat("segment.all.current"), 3);
    plugin.function::<End>("blockyard_release_pool")(0, pool);
    plugin.empty_cache();
    assert_eq!(plugin.stat("segment.all.current"), 2);
}

#[test]
fn a_scope_that_is_not_open_is_reported() {
    if !is_child() {
        let output = run_again("hooks::a_scope_that_is_not_open_is_reported", &[]);
        assert!(
            output.contains("blockyard: endAllocatePool: not currently recording to mempool_id (0, 4)"),
            "{output}"
        );
        assert!(
            output.contains("blockyard: beginAllocateToPool: already recording to mempool_id (0, 5)"),
            "{output}"
        );
        assert!(output.contains("no memory pool has the number (0, 18446744073709551615)"), "{output}");
        return;
    }
    let plugin = Plugin::load();
    let begin = plugin.function::<Begin>("blockyard_begin_allocate_to_pool");
    plugin.function::<End>("blockyard_end_allocate_to_pool")(0, Pool(0, 4));
    begin(0, Pool(0, 5), std::ptr::null());
    begin(0, Pool(0, 5), std::ptr::null());
    begin(0, Pool(0, u64::MAX), std::ptr::null());
}

#[test]
fn bases_are_those_of_segments() {
    if !is_child() {
        run_again("hooks::bases_are_those_of_segments", &[]);
        let settings = [("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")];
        let output = run_again("hooks::bases_are_those_of_segments", &settings);
        assert!(output.contains("set expandable_segments:False"), "{output}");
        return;
    }
    let plugin = Plugin::load();
    let (first, second) = (plugin.malloc(3 * MIB, 0), plugin.malloc(3 * MIB, 0));
    let found = base(&plugin, second);
    if std::env::var_os("PYTORCH_CUDA_ALLOC_CONF").is_some() {
        assert_eq!(found.0, 0);
    } else {
        assert_eq!(found, (first, 20 << 20));
        assert_eq!(base(&plugin, 4096).0, 0);
        assert_eq!(plugin.function::<Base>("blockyard_base_alloc")(second, std::ptr::null_mut()), first);
    }
}

#[test]
fn a_memory_fraction_limits_what_is_reserved() {
    if !is_child() {
        let name = "hooks::a_memory_fraction_limits_what_is_reserved";
        let output = run_again(name, &[("FAKE_CUDA_MEMORY", "1073741824")]);
        assert!(output.contains("512.00 MiB allowed; "), "{output}");
        assert!(output.contains("blockyard: invalid fraction:1.5. Please set within [0, 1]."), "{output}");
        return;
    }
    let plugin = Plugin::load();
    let set = plugin.function::<extern "C" fn(f64, c_int)>("blockyard_memory_fraction");
    set(0.5, 0);
    assert_eq!(plugin.malloc(600 * MIB, 0), 0);
    let path = crate::library::folder("fraction").join("run.jsonl");
    plugin.record_start();
    assert_eq!(plugin.malloc(600 * MIB, 0), 0);
    assert_ne!(plugin.malloc(300 * MIB, 0), 0);
    plugin.record_finish(&path);
    // The limit stands in the recording's settings.
    crate::recorded::verify(&path);
    set(1.5, 0);
    set(1.0, 0);
    assert_ne!(plugin.malloc(600 * MIB, 0), 0);
}
