//! The programs of `examples/programs` print what they printed on an H200.
use std::path::Path;

use blockyard_python::ProgramSettings;
use blockyard_rules::{AllocatorConfig, Release};

fn printed(source: &str, name: &str, conf: &str) -> String {
    let config =
        AllocatorConfig::parse(conf, Release::OF_RECORDED_OPERATORS).expect("the settings can be read");
    let settings = ProgramSettings { config, ..ProgramSettings::default() };
    let (printed, finished) = crate::support::run_with(source, name, settings);
    assert_eq!(finished.traceback, None, "{name}");
    // What depends on the driver's addresses is marked, and came out as on the recorded GPU.
    let is_chance = |mark: &blockyard_answers::EstimatedOperator| {
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
    let (mut count, mut expandable_count) = (0, 0);
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_none_or(|extension| extension != "py") {
            continue;
        }
        let read = |path: &Path| {
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let source = read(&path);
        assert_eq!(printed(&source, &name, ""), read(&path.with_extension("txt")), "{name}");
        count += 1;
        let expandable = path.with_extension("expandable_segments.txt");
        if expandable.exists() {
            let conf = "expandable_segments:True";
            assert_eq!(printed(&source, &name, conf), read(&expandable), "{name} under {conf}");
            expandable_count += 1;
        }
    }
    assert_eq!((count, expandable_count), (15, 7));
}
