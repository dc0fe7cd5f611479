//! The file of a request, and its content type.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

/// The file below `folder` for a request of `url`; `None` if no such file exists.
///
/// `url` is the path of a request, still percent-encoded, with or without a query. A path that leads out of
/// the folder, by `..`, by an encoded separator or by a symbolic link, gives `None`. `folder` must be
/// canonical.
pub fn locate(folder: &Path, url: &str) -> Option<PathBuf> {
    let path = url.split(['?', '#']).next()?.strip_prefix('/')?;
    let mut file = folder.to_owned();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let part = percent_decode_str(part).decode_utf8().ok()?;
        if part == "." || part == ".." || part.contains(['/', '\\', ':', '\0']) {
            return None;
        }
        file.push(&*part);
    }
    if path.is_empty() {
        file.push("index.html");
    }
    let file = file.canonicalize().ok()?;
    (file.starts_with(folder) && file.is_file()).then_some(file)
}

/// The MIME type for a file of this name; `application/octet-stream` for an unknown ending.
pub fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "css" => "text/css; charset=utf-8",
        "gz" => "application/gzip",
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" | "workload" => "text/plain; charset=utf-8",
        "wasm" => "application/wasm",
        "webmanifest" => "application/manifest+json",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let temporary = tempfile::tempdir().unwrap();
        let outside = temporary.path().canonicalize().unwrap();
        let folder = outside.join("dist");
        std::fs::create_dir_all(folder.join("samples")).unwrap();
        std::fs::write(outside.join("secret"), "").unwrap();
        std::fs::write(folder.join("index.html"), "").unwrap();
        std::fs::write(folder.join("samples/a b.gz"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(outside.join("secret"), folder.join("link")).unwrap();

        let found = |url| locate(&folder, url).map(|file| file.strip_prefix(&folder).unwrap().to_owned());
        assert_eq!(found("/"), Some("index.html".into()));
        assert_eq!(found("/index.html?v=1"), Some("index.html".into()));
        assert_eq!(found("/samples/a%20b.gz"), Some("samples/a b.gz".into()));
        assert_eq!(found("//samples//a%20b.gz"), Some("samples/a b.gz".into()));
        let refused = [
            "/../secret",
            "/%2e%2e/secret",
            "/..%2fsecret",
            "/samples/../../secret",
            "/..\\secret",
            "/link",
            "/samples",
            "/secret",
            "/%00",
            "/%ff",
            "secret",
            "http://127.0.0.1/index.html",
            "",
        ];
        for url in refused {
            assert_eq!(found(url), None, "{url}");
        }
        let absolute = format!("/{}", outside.join("secret").display());
        assert_eq!(found(absolute.as_str()), None);
    }

    #[test]
    fn types_are_those_that_browsers_insist_on() {
        let cases = [
            ("blockyard-web_bg.wasm", "application/wasm"),
            ("boot.js", "text/javascript; charset=utf-8"),
            ("style.css", "text/css; charset=utf-8"),
            ("gpt2.jsonl.gz", "application/gzip"),
            ("icon.svg", "image/svg+xml"),
            ("LICENSE", "application/octet-stream"),
        ];
        for (name, expected) in cases {
            assert_eq!(content_type(Path::new(name)), expected);
        }
    }
}
