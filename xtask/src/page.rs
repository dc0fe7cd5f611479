//! The parts of the page: its programs, its style, and the files that go with them.

/// A program of the page. Programs of one profile are compiled together.
pub(crate) struct Program {
    pub(crate) package: &'static str,
    pub(crate) bin: &'static str,
    pub(crate) profile: &'static str,
}

impl Program {
    const fn new(package: &'static str, bin: &'static str, profile: &'static str) -> Self {
        Self { package, bin, profile }
    }

    /// Whether this is the page itself, which is cut into parts.
    pub(crate) fn is_page(&self) -> bool {
        self.bin == "blockyard-web"
    }
}

pub(crate) const PROGRAMS: [Program; 5] = [
    Program::new("blockyard-web", "blockyard-web", "wasm-release"),
    // Loaded when a workload runs on the reader's GPU, or when figures are drawn there.
    Program::new("blockyard-gpu", "blockyard-gpu", "wasm-release"),
    // Loaded when the first screen is complete: reads files and makes long runs.
    Program::new("blockyard-worker", "blockyard-worker", "wasm-worker"),
    // Loaded after the worker: answers the questions of the lab.
    Program::new("blockyard-worker", "blockyard-questions", "wasm-worker"),
    // Loaded when a report is asked for.
    Program::new("blockyard-worker", "blockyard-report", "wasm-worker"),
];

/// The file of the page with all parts of the style.
pub(crate) const STYLE: &str = "style.css";

/// The parts of the style in `web/style`. Of two rules for the same element, a later one may win.
pub(crate) const STYLE_PARTS: [&str; 15] = [
    "base.css",
    "page.css",
    "lesson.css",
    "course.css",
    "embedded.css",
    "workbench.css",
    "lab.css",
    "editor.css",
    "recording.css",
    "messages.css",
    "narrow.css",
    "paper.css",
    "figures.css",
    "program.css",
    "folded.css",
];

/// Files of the repository, and their places in the page. `python` and the service worker are made besides.
pub(crate) const FILES: [(&str, &str); 10] = [
    ("web/index.html", "index.html"),
    ("web/icon.svg", "icon.svg"),
    ("web/boot.js", "boot.js"),
    ("web/worker.js", "worker.js"),
    ("web/python.js", "python.js"),
    ("web/offline.js", "offline.js"),
    // The typeface, see crates/show/figure/typeface/README.md; its license goes with it.
    ("crates/show/figure/typeface/sans-regular.woff2", "typeface/sans-regular.woff2"),
    ("crates/show/figure/typeface/sans-semibold.woff2", "typeface/sans-semibold.woff2"),
    ("crates/show/figure/typeface/mono-regular.woff2", "typeface/mono-regular.woff2"),
    ("crates/show/figure/typeface/LICENSE", "typeface/LICENSE"),
];

/// Folders of the repository, and their places in the page.
pub(crate) const FOLDERS: [(&str, &str); 2] = [("web/samples", "samples"), ("examples/programs", "programs")];
