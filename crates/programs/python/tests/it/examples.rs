//! The programs of `examples/programs` print what they printed on an H200.
use std::path::Path;

use blockyard_python::ProgramSettings;

fn printed(source: &str, name: &str) -> String {
    let (printed, finished) = crate::support::run_with(source, name, ProgramSettings::default());
    assert_eq!(finished.traceback, None, "{name}");
    // What depends on the driver's addresses is marked, and came out as on the recorded GPU.
    let is_chance = |mark: &blockyard_python::EstimatedOperator| {
        mark.reason.contains("addresses that the driver chooses")
    };
    assert!(finished.estimates.iter().all(is_chance), "{name}: {:?}", finished.estimates);
    printed
}

#[test]
fn examples_print_what_they_printed_on_an_h200() {
    if !crate::support::has_python_of_recordings() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/programs");
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
