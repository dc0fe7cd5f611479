//! The module that is built for the page. All of its code is in the library.

use blockyard_gpu as _;

fn main() {}
