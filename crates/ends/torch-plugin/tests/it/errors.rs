//! What cannot be given is a null pointer, and a message says why.

use std::ffi::c_int;

use crate::library::{Plugin, is_child, run_again};

const GIB: isize = 1 << 30;

#[test]
fn a_full_device_is_reported_in_pytorchs_words() {
    if is_child() {
        let plugin = Plugin::load();
        let first = plugin.malloc(GIB / 2, 0);
        assert_ne!(first, 0);
        assert_eq!(plugin.malloc(GIB, 0), 0);
        assert_eq!(plugin.malloc(1 << 60, 0), 0);
        assert_eq!(plugin.malloc(-1, 0), 0);
        // The device stays usable.
        plugin.free(first, 0);
        assert_ne!(plugin.malloc(GIB, 0), 0);
        assert_eq!(plugin.stat("num_ooms"), 1);
        return;
    }
    let name = "errors::a_full_device_is_reported_in_pytorchs_words";
    let output = run_again(name, &[("FAKE_CUDA_MEMORY", "1073741824")]);
    assert!(
        output.contains(
            "blockyard: CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total capacity of 1024.00 MiB of which \
             512.00 MiB is free. Of the allocated memory 512.00 MiB is allocated by PyTorch"
        ),
        "{output}"
    );
    assert!(
        output.contains("blockyard: CUDA out of memory. Tried to allocate more than 1EB memory."),
        "{output}"
    );
    assert!(output.contains("blockyard: a request of -1 bytes"), "{output}");
}

#[test]
fn another_device_is_named() {
    if is_child() {
        let plugin = Plugin::load();
        assert_ne!(plugin.malloc_on(1, GIB / 2, 0), 0);
        assert_eq!(plugin.malloc_on(1, GIB, 0), 0);
        assert_eq!(plugin.malloc_on(2, 1, 0), 0);
        assert_eq!(plugin.malloc_on(-3, 1, 0), 0);
        return;
    }
    let settings = [("FAKE_CUDA_MEMORY", "1073741824"), ("FAKE_CUDA_DEVICES", "2")];
    let output = run_again("errors::another_device_is_named", &settings);
    assert!(output.contains("GPU 1 has a total capacity of 1024.00 MiB"), "{output}");
    assert!(output.contains("CUDA device 2 cannot be used: there is no CUDA device 2"), "{output}");
    assert!(output.contains("there is no CUDA device -3"), "{output}");
}

#[test]
fn a_machine_without_a_device_is_reported() {
    if is_child() {
        assert_eq!(Plugin::load().malloc(512, 0), 0);
        return;
    }
    let output = run_again("errors::a_machine_without_a_device_is_reported", &[("FAKE_CUDA_DEVICES", "0")]);
    assert!(
        output.contains("blockyard: CUDA device 0 cannot be used: the CUDA driver finds no device"),
        "{output}"
    );
}

#[test]
fn settings_that_pytorch_refuses_are_reported() {
    if is_child() {
        let plugin = Plugin::load();
        plugin.function::<extern "C" fn(c_int)>("blockyard_init")(1);
        assert_eq!(plugin.malloc(512, 0), 0);
        assert_eq!(plugin.function::<extern "C" fn() -> c_int>("blockyard_check_settings")(), -1);
        assert!(plugin.last_error().contains("PYTORCH_ALLOC_CONF"), "{}", plugin.last_error());
        return;
    }
    let settings = [("PYTORCH_ALLOC_CONF", "max_split_size_mb:3")];
    let output = run_again("errors::settings_that_pytorch_refuses_are_reported", &settings);
    let words = "PYTORCH_ALLOC_CONF cannot be used: CachingAllocator option max_split_size_mb too small, must be >= 20";
    assert_eq!(output.matches(words).count(), 2, "{output}");
}

#[test]
fn a_pointer_that_is_not_live_is_reported() {
    if is_child() {
        let plugin = Plugin::load();
        plugin.free(0, 0);
        plugin.free(4096, 0);
        let block = plugin.malloc(512, 0);
        plugin.free(block, 0);
        plugin.free(block, 0);
        plugin.record_stream(block, 7);
        return;
    }
    let output = run_again("errors::a_pointer_that_is_not_live_is_reported", &[]);
    assert!(output.contains("nothing was allocated on CUDA device 0 yet"), "{output}");
    assert_eq!(output.matches("invalid device pointer").count(), 1, "{output}");
}

#[test]
fn a_driver_that_is_gone_at_the_end_is_no_crash() {
    if is_child() {
        let plugin = Plugin::load();
        let (one, two) = (plugin.malloc(512, 0), plugin.malloc(512, 0));
        plugin.record_stream(one, 0);
        plugin.record_stream(two, 0x1234);
        plugin.free(one, 0);
        // Its free asks the driver for an event, and the driver is shut down.
        plugin.free(two, 0);
        return;
    }
    let settings = [("FAKE_CUDA_FAIL", "cuEventCreate:1:4,cuEventRecord:1:4")];
    let output = run_again("errors::a_driver_that_is_gone_at_the_end_is_no_crash", &settings);
    assert!(!output.contains("blockyard:"), "{output}");
}
