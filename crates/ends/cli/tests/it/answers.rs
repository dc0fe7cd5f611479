use std::path::Path;

use serde_json::Value;

use super::command;

/// Fields that were added after the answers were recorded. A new field does not raise the version.
const ADDED: [&str; 2] = ["certificate.sentence", "certificate.first_difference.step"];

/// Asserts that the new value has all fields and values of the old one, and no others but the [`ADDED`]
/// fields.
fn assert_holds(old: &Value, new: &Value, place: &str) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in old {
                assert_holds(value, new.get(name).unwrap_or(&Value::Null), &format!("{place}.{name}"));
                assert!(new.contains_key(name), "{place}.{name} is gone");
            }
            for name in new.keys().filter(|name| !old.contains_key(*name)) {
                let place = format!("{place}.{name}");
                assert!(ADDED.iter().any(|added| place.ends_with(added)), "{place} is new");
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            assert_eq!(old.len(), new.len(), "{place}");
            for (old, new) in old.iter().zip(new) {
                assert_holds(old, new, place);
            }
        }
        _ => assert_eq!(old, new, "{place}"),
    }
}

/// The answers in `tests/fixtures/answers` were printed before the types of `crates/base/answers` existed;
/// the command still prints them.
#[test]
fn the_command_prints_what_it_printed_before_its_json_had_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let folder = root.join("tests/fixtures/answers");
    let commands = std::fs::read_to_string(folder.join("commands.txt")).unwrap();
    let mut count = 0;
    for line in commands.lines() {
        let (name, arguments) = line.split_once(": ").unwrap();
        let output = command().args(arguments.split(' ')).current_dir(&root).output().unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        let recorded = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
        assert_eq!(found.lines().count(), recorded.lines().count(), "{name}");
        for (old, new) in recorded.lines().zip(found.lines()) {
            if old == new {
                continue;
            }
            let (old, new) = (serde_json::from_str(old).unwrap(), serde_json::from_str(new).unwrap());
            assert_holds(&old, &new, name);
        }
        count += 1;
    }
    assert_eq!(count, 27);
}
