//! The files in the repository are those that follow from the types.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use blockyard_answers_writer::{files, root};

#[test]
fn every_file_in_the_repository_is_the_one_that_the_types_give() {
    let files = files().unwrap();
    assert!(files.len() >= 3);
    for file in files {
        let found = std::fs::read_to_string(root().join(&file.path)).unwrap_or_default();
        assert!(found == file.text, "{} is stale: run `cargo xtask update answers`", file.path.display());
    }
}

#[test]
fn every_schema_names_each_field_and_says_what_it_is() {
    for file in files().unwrap().iter().filter(|file| file.path.extension().is_some_and(|end| end == "json"))
    {
        let schema: serde_json::Value = serde_json::from_str(&file.text).unwrap();
        let definitions = schema["$defs"].as_object().unwrap();
        assert!(definitions.len() >= 3, "{}", file.path.display());
        let document = ("the document".to_owned(), schema.clone());
        for (name, definition) in definitions.clone().into_iter().chain([document]) {
            for (field, value) in definition["properties"].as_object().into_iter().flatten() {
                let is_said = value.get("description").is_some() || value.get("const").is_some();
                assert!(is_said, "{name}.{field} of {} has no description", file.path.display());
            }
        }
    }
}
