//! Has the crate built again when the Python files change that are compiled into it.

fn main() {
    println!("cargo::rerun-if-changed=lib");
    println!("cargo::rerun-if-env-changed=BLOCKYARD_SHOW_LIBRARY");
}
