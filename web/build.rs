//! Linker settings of the page. With the feature `split`, the module is cut into parts afterwards, and the
//! cutter reads from the relocations which function uses which.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_SPLIT").is_some() {
        println!("cargo::rustc-link-arg-bins=--emit-relocs");
    }
}
