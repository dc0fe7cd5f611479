//! `later_release` under libFuzzer; without it, on the files that are named.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| blockyard_fuzz::later_release(data));

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    blockyard_fuzz::on_named_files(blockyard_fuzz::later_release)
}
