//! The service worker that keeps the page in the reader's browser: that of the built page and that of a site
//! of `blockyard site`.
//!
//! The worker is ours instead of a package, because it is one page of JavaScript that knows only the list of
//! the files.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The name of the worker's file beside the page.
pub const SERVICE_WORKER: &str = "service-worker.js";

const SCRIPT: &str = include_str!("service-worker.js");

/// The characters that are escaped in an address: all but letters, digits, `-`, `_`, `.` and `/`.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'/');

/// The worker that keeps these files, by their paths with `/` below the page's folder, and the page's own
/// address; `mark` is its first line. If the content of any file changes, the worker has another version,
/// which replaces the one before.
pub fn service_worker<'a>(mark: &str, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut hasher = DefaultHasher::new();
    let mut list = String::from("\"./\"");
    for (name, bytes) in files {
        (name, bytes).hash(&mut hasher);
        // The list has only letters, digits, `%` and unescaped characters, none of which ends a text of
        // JavaScript.
        list.push_str(", \"./");
        list.extend(utf8_percent_encode(name, KEPT));
        list.push('"');
    }
    format!("{mark}\nconst VERSION = \"{:016x}\";\nconst FILES = [{list}];\n{SCRIPT}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &[u8])]) -> String {
        service_worker("// ours", files.iter().copied())
    }

    fn version(script: &str) -> &str {
        script.lines().nth(1).unwrap()
    }

    #[test]
    fn another_content_is_another_version() {
        let one = of(&[("a.js", b"1"), ("b/c d.wasm", b"2")]);
        assert!(one.starts_with("// ours\nconst VERSION = \""), "{one}");
        assert!(one.contains(r#"["./", "./a.js", "./b/c%20d.wasm"]"#), "{one}");
        assert_eq!(version(&one), version(&of(&[("a.js", b"1"), ("b/c d.wasm", b"2")])));
        for other in [
            of(&[("a.js", b"1"), ("b/c d.wasm", b"3")]),
            of(&[("a.js", b"1")]),
            of(&[("a.js", b"12"), ("b/c d.wasm", b"")]),
        ] {
            assert_ne!(version(&one), version(&other));
        }
    }

    #[test]
    fn no_name_ends_the_text_that_it_stands_in() {
        let script = of(&[("a\"];alert(1);//\n.js", b"")]);
        assert!(script.contains("./a%22%5D%3Balert%281%29%3B//%0A.js\"];"), "{script}");
    }
}
