//! `cargo xtask oracle`.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

use std::path::Path;

fn main() -> anyhow::Result<()> {
    let target = Path::new("target");
    let wheel = blockyard_oracle::wheel(target)?;
    let cudart = blockyard_oracle::build_cudart(target)?;
    println!("{} {}", wheel.libraries.display(), cudart.display());
    Ok(())
}
