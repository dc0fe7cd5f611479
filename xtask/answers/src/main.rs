//! `cargo xtask update answers`: writes the files that follow from the types of `crates/base/answers`.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

fn main() -> anyhow::Result<()> {
    for path in blockyard_answers_writer::update()? {
        println!("    wrote {}", path.display());
    }
    Ok(())
}
