//! The Blockyard page's program; the library holds all of it.

fn main() {
    blockyard_web::start();
}
