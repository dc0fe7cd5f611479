//! The programs of `examples/programs` print what they printed on an H200.
#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use blockyard_python::{ProgramSettings, ProgramSource, run_on_thread};

fn printed(source: &str, name: &str) -> String {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&printed);
    let program = ProgramSource { file: name.to_owned(), source: source.to_owned(), arguments: Vec::new() };
    let finished = run_on_thread(program, ProgramSettings::default(), move |text: &str| {
        sink.lock().expect("no printing failed").push_str(text);
    })
    .expect("the interpreter answers");
    assert_eq!(finished.traceback, None, "{name}");
    // What depends on the driver's addresses is marked, and came out as on the recorded GPU.
    let is_chance =
        |mark: &blockyard_torch::Estimate| mark.reason.contains("addresses that the driver chooses");
    assert!(finished.estimates.iter().all(is_chance), "{name}: {:?}", finished.estimates);
    printed.lock().expect("no printing failed").clone()
}

#[test]
fn examples_print_what_they_printed_on_an_h200() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/programs");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_none_or(|extension| extension != "py") {
            continue;
        }
        let read = |path: &Path| {
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        assert_eq!(printed(&read(&path), &name), read(&path.with_extension("txt")), "{name}");
        count += 1;
    }
    assert_eq!(count, 8);
}
