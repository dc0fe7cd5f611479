//! The page may connect to the server that it came from, and to no other: SECURITY.md promises it.

use std::collections::BTreeMap;
use std::path::Path;

/// The directives of the page's policy, each with its sources.
fn policy() -> BTreeMap<String, Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/index.html");
    let html = std::fs::read_to_string(page).unwrap();
    let (_, behind) = html.split_once("http-equiv=\"Content-Security-Policy\" content=\"").expect("a policy");
    let (policy, _) = behind.split_once('"').unwrap();
    let directives = policy.split(';').map(|directive| {
        let mut words = directive.split_whitespace().map(str::to_owned);
        (words.next().unwrap(), words.collect())
    });
    directives.collect()
}

#[test]
fn the_page_connects_to_its_own_server_alone() {
    let policy = policy();
    assert_eq!(policy["connect-src"], ["'self'"]);
    assert_eq!(policy["default-src"], ["'self'"]);
    assert_eq!(policy["form-action"], ["'none'"]);
    // No shown or run file comes from another server, since an address could carry the content of a file.
    let known = ["'self'", "'none'", "'unsafe-inline'", "'wasm-unsafe-eval'", "blob:", "data:"];
    for (directive, sources) in &policy {
        assert!(sources.iter().all(|source| known.contains(&source.as_str())), "{directive} {sources:?}");
    }
}

#[test]
fn the_page_names_no_address_of_another_machine() {
    let html =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/index.html")).unwrap();
    for attribute in ["href=\"", "src=\""] {
        for address in html.split(attribute).skip(1) {
            let address = address.split('"').next().unwrap();
            assert!(!address.contains("//"), "{address}");
        }
    }
}
