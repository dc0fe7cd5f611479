//! Linker settings of the module.

fn main() {
    // Each Python call nests several calls of the interpreter. The linker's default of 1 MiB is too small for usual programs.
    println!("cargo::rustc-link-arg-bins=-zstack-size=33554432");
    println!("cargo::rerun-if-changed=build.rs");
}
