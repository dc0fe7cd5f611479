//! The program that is built for the page; the library holds all of it.

use blockyard_gpu as _;

fn main() {}
