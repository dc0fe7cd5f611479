//! `blockyard export OUT.html` and `blockyard open`: what they make of a built page. That the page shows the
//! file is tested in a browser (`tests/e2e`).

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;

use super::{blockyard, command};

/// The names of the files that a page consists of, with contents that tell them apart.
const PARTS: [&str; 12] = [
    "boot.js",
    "blockyard-web.js",
    "blockyard-web_bg.wasm",
    "blockyard-web-workbench.wasm",
    "blockyard-questions.js",
    "blockyard-questions_bg.wasm",
    "blockyard-report.js",
    "blockyard-report_bg.wasm",
    "worker.js",
    "blockyard-worker.js",
    "blockyard-worker_bg.wasm",
    "style.css",
];

fn snapshot() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/snapshots/rank0.pickle.gz")
}

pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Puts a page into the folder whose files say their names.
    pub(crate) fn with_page() -> Self {
        let folder = Self::new();
        for part in PARTS {
            std::fs::write(folder.path().join(part), part).unwrap();
        }
        folder
    }

    pub(crate) fn text(&self) -> &str {
        self.path().to_str().unwrap()
    }
}

fn export(file: &Path, page: &Folder) -> Result<String, String> {
    let out = page.path().join("out.html");
    let called = blockyard(["export", file.to_str().unwrap(), out.to_str().unwrap(), "--page", page.text()]);
    match called.status {
        0 => Ok(std::fs::read_to_string(out).unwrap()),
        _ => Err(called.err),
    }
}

#[test]
fn a_page_has_all_its_parts_and_the_file_in_it() {
    let page = Folder::with_page();
    let html = export(&snapshot(), &page).unwrap();
    assert!(html.contains("data-address=\"#open=rank0.pickle.gz\""), "{html}");
    assert!(html.contains("<style>style.css</style>"));
    for part in &PARTS[..9] {
        assert!(html.contains(&format!("data-file=\"{part}\" data-packed>H4s")), "{part}");
    }
    // A file that is packed already travels as it is.
    assert!(html.contains("data-file=\"open/rank0.pickle.gz\">H4s"));
    assert!(!html.contains("http://") && !html.contains("https://"));
    let text = page.path().join("mine & \"yours\".workload");
    std::fs::write(&text, "a = alloc 3 MiB\n").unwrap();
    let html = export(&text, &page).unwrap();
    assert!(html.contains("data-file=\"open/mine &amp; &quot;yours&quot;.workload\" data-packed>H4s"));
    assert!(html.contains("#open=mine%20%26%20%22yours%22.workload\""));
}

#[test]
fn without_a_page_or_with_a_wrong_file_nothing_is_written() {
    let empty = Folder::new();
    let error = export(&snapshot(), &empty).unwrap_err();
    assert!(error.contains("has no built page: the file boot.js is missing"), "{error}");
    let page = Folder::with_page();
    let model = page.path().join("model.pickle");
    std::fs::write(&model, b"\x80\x04}\x94\x8c\x06weight\x94K\x01s.").unwrap();
    let error = export(&model, &page).unwrap_err();
    assert!(error.contains("model.pickle"), "{error}");
    assert!(!page.path().join("out.html").exists());
}

#[test]
fn a_file_is_served_with_the_page() {
    let page = Folder::with_page();
    let file = snapshot();
    let mut server = command()
        .args(["open", file.to_str().unwrap(), "--no-browser", "--page", page.text()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let port: u16 = line
        .split_once("http://127.0.0.1:")
        .and_then(|(_, rest)| rest.split_once("/?once#open=rank0.pickle.gz "))
        .and_then(|(port, _)| port.parse().ok())
        .unwrap_or_else(|| panic!("{line}"));
    let found = get(port, "/open/rank0.pickle.gz");
    let other = get(port, "/open/rank1.pickle.gz");
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(found.ends_with(&std::fs::read(&file).unwrap()));
    assert!(other.starts_with(b"HTTP/1.1 404"));
}

fn get(port: u16, path: &str) -> Vec<u8> {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}
