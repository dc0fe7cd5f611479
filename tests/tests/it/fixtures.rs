//! Every fixture has a line that says where it comes from.

use std::path::Path;

/// Whether the name is the pattern with something in place of its `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((before, after)) => {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        }
        None => pattern == name,
    }
}

/// The words in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_fixture_is_in_the_list_of_where_they_come_from() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let list = std::fs::read_to_string(fixtures.join("README.md")).unwrap();
    let mut missing = Vec::new();
    for folder in
        std::fs::read_dir(&fixtures).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir())
    {
        let name = folder.file_name().into_string().unwrap();
        let section = list.split("\n## ").find_map(|section| section.strip_prefix(&format!("{name}\n")));
        let section = section.unwrap_or_else(|| panic!("tests/fixtures/README.md has no section {name}"));
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            if !quoted(section).any(|pattern| matches(pattern, &file)) {
                missing.push(format!("{name}/{file}"));
            }
        }
    }
    assert!(missing.is_empty(), "not in tests/fixtures/README.md: {}", missing.join(", "));
}

#[test]
fn patterns_name_files() {
    assert!(matches("a-*.gz", "a-b.gz") && matches("a.gz", "a.gz") && matches("*", "x"));
    assert!(!matches("a-*.gz", "b.gz") && !matches("a*a", "a"));
}
