//! The vocabulary keeps its 64 bits where `usize` has 32.
#![cfg(target_arch = "wasm32")]

use blockyard_record::{Bytes, DeviceAddr};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
fn sizes_beyond_the_address_space_print_in_full() {
    assert_eq!(size_of::<usize>(), 4);
    assert_eq!(Bytes::gib(80).to_string(), "80 GiB");
    assert_eq!(Bytes::new(u64::MAX).to_string(), "15.99 EiB");
}

#[wasm_bindgen_test]
fn addresses_beyond_the_address_space_keep_their_distance() {
    let base = DeviceAddr::new(0x7f00_0000_0000);
    assert_eq!(base.offset(Bytes::gib(40)).offset_from(base), Bytes::gib(40));
    assert_eq!(base.to_string(), "0x7f0000000000");
}
