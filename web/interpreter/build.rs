//! Linker settings of the module.

fn main() {
    // Each Python call nests several calls of the interpreter. The linker's default of 1 MiB is too small for
    // usual programs.
    println!("cargo::rustc-link-arg-bins=-zstack-size=33554432");
    // Half of the memory that WebAssembly may have, so that `heap.rs` ends the program with a sentence before
    // a browser or a phone ends the whole tab.
    println!("cargo::rustc-link-arg-bins=--max-memory=2147483648");
    println!("cargo::rerun-if-changed=build.rs");
}
