//! A document that names a range of PyTorch's releases names all releases whose rules are known.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

use blockyard_rules::Release;

/// The documents in the root of the repository and in `docs`, and the first page of the allocator.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let files =
        [root.clone(), root.join("docs")].into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut found: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    found.retain(|file| file.extension().is_some_and(|end| end == "md"));
    found.push(root.join("crates/core/allocator/src/lib.rs"));
    found
}

#[test]
fn documents_name_the_first_and_the_last_release() {
    let [first, .., last] = Release::ALL.map(Release::name);
    let mut count = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for (at, begin) in text.match_indices(&format!("{first} to 2.")) {
            let names_all = text[at..].starts_with(&format!("{first} to {last}"));
            assert!(names_all, "{}: {begin}... does not end with {last}", document.display());
            count += 1;
        }
    }
    assert!(count >= 7, "only {count} places name the releases {first} to {last}");
}
