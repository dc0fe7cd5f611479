//! Linker settings of the module.

fn main() {
    // Each Python call nests several calls of the interpreter; the linker's own choice of 1 MiB holds too few of them.
    println!("cargo::rustc-link-arg-bins=-zstack-size=33554432");
    println!("cargo::rerun-if-changed=build.rs");
}
