//! The module of the page. All of its code is in the library.

fn main() {
    blockyard_web::start();
}
