//! The size budgets of the page: the first download, and the modules that are loaded later.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::bundle::files_below;
use crate::workspace::Workspace;

/// Files that are loaded together, and their budget in bytes after gzip.
struct Budget {
    what: &'static str,
    /// How the names of the files begin.
    prefixes: &'static [&'static str],
    most: u64,
}

/// Files that are loaded later, and the typeface, which comes with the first load; all other files are the
/// first load.
const LATER: [Budget; 11] = [
    // The pages for teachers, the editor of lessons, and sheets: nobody else fetches them.
    Budget {
        what: "for teachers, once a page of theirs opens",
        prefixes: &["blockyard-web-teach"],
        most: 128_000,
    },
    Budget {
        what: "parts of the page, once the page rests",
        prefixes: &["blockyard-web-"],
        // With the texts of the twenty lessons and the glossary (49 kB), their reader, their views, sheets to
        // print, the editor of lessons, which finds all errors at once, the help, and the grid of
        // allocations, which is drawn on paper, too (48 kB). With the time chart, which was in the first load
        // (20 kB), programs that run again with a change, solutions to hand in, sheets of questions alone,
        // and grades of a class with its table, answer keys and pages that are filled by measure (20 kB).
        // With the sheet of the workbench for a printer and its figure as SVG, which were in the first load
        // with the time chart (31 kB). With the search for the largest batch, what an answer of an exercise
        // does otherwise than the solution, and archives and notebooks that a class hands in (34 kB). With the
        // curve of the batches that fit (2 kB). With the limit, the failure and the peaks in the figure of
        // allocations, which is the only one of a file (3 kB). With chapters, whose sliders play the lesson again,
        // and the view of a program that runs (36 kB). With the code that reads and plays lessons, which was in the
        // first load (about 45 kB), and without the pages for teachers. With the code that reads the lab's answers,
        // which was in the first load (14 kB), names beside narrow blocks, and plans with a lesson of one's own.
        most: 890_500,
    },
    Budget {
        what: "worker, once the page rests",
        prefixes: &["blockyard-worker", "worker.js"],
        // Reads snapshots of five releases of PyTorch, with intervals by a kept crate (about 2 kB more than
        // by hand).
        most: 480_000,
    },
    Budget {
        what: "questions of the lab, after the worker",
        prefixes: &["blockyard-questions"],
        // Replays each setting at both bounds of the limit and at the recorded addresses, and gives the
        // verdict, with GPUs, the latest release, the least device by replays and loops by their period. With
        // iterations that are replayed forward (8 kB), and the gap between reserved and requested bytes with
        // what closes it (16 kB). With what changes of the code take, who keeps what grows, and settings that
        // are replayed forward (57 kB). With the rest of an iteration that failed, and devices that are
        // compared (17 kB). With the dialects of other GPUs (2 kB), and PyTorch 2.6 and 2.7 and more of Ascend's
        // rules (4 kB).
        most: 751_500,
    },
    // All questions of the lab, too, and figures with the limit of the process and a heading.
    Budget { what: "reports, for a first report", prefixes: &["blockyard-report"], most: 931_500 },
    Budget { what: "WebGPU, for a first run on the GPU", prefixes: &["blockyard-gpu"], most: 100_000 },
    Budget {
        what: "Python, for a first program",
        // CPython is 3.06 MB of it, Python's own library 0.88 MB, our extension and our packages are the rest.
        prefixes: &["python.js", "python/"],
        most: 5_800_000,
    },
    Budget { what: "example programs, one at a time", prefixes: &["programs/"], most: 60_000 },
    // The size of recordings is given; the budget prevents a recording from being added unnoticed.
    Budget { what: "samples, once the page rests", prefixes: &["samples/"], most: 60_000 },
    Budget {
        what: "keeps the page in the browser, once the page rests",
        prefixes: &["offline.js", "service-worker.js"],
        most: 3_000,
    },
    // The typeface has a separate budget, so that it does not compete with the program: without it the layout
    // of the page would differ from machine to machine.
    Budget { what: "typeface, beside the first load", prefixes: &["typeface/"], most: 32_000 },
];

// The code that reads and plays lessons is in their module, and that of the lab's answers in the workbench's.
const FIRST: Budget = Budget { what: "first load", prefixes: &[], most: 661_500 };

/// Prints every file of `dist/` with its size after gzip and fails if those of a budget cost more than it
/// allows.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let dist = workspace.dist();
    let mut sums = [0_u64; LATER.len() + 1];
    println!("{:<44} {:>10} {:>10}", "file", "bytes", "gzip");
    for name in files_below(&dist).context("there is no page: run `cargo xtask build`")? {
        let bytes = std::fs::read(dist.join(&name))?;
        let packed = packed_size(&name, &bytes)?;
        println!("{:<44} {:>10} {packed:>10}", name.display(), bytes.len());
        sums[budget_of(&name)] += packed;
    }
    let mut over = Vec::new();
    for (budget, sum) in LATER.iter().chain([&FIRST]).zip(sums) {
        println!("{:<44} {:>10} {sum:>10} of {}", budget.what, "", budget.most);
        if sum > budget.most {
            over.push(format!("{}: {} bytes of gzip too many", budget.what, sum - budget.most));
        }
    }
    if !over.is_empty() {
        bail!("the page is over its budget: {}", over.join("; "));
    }
    Ok(())
}

/// The index of the file's budget; the budget of the first load is the last.
fn budget_of(name: &Path) -> usize {
    let name = name.to_string_lossy();
    let is_of = |budget: &Budget| budget.prefixes.iter().any(|prefix| name.starts_with(prefix));
    LATER.iter().position(is_of).unwrap_or(LATER.len())
}

/// The length of `bytes` after gzip; the length itself for a file that is packed already.
fn packed_size(name: &Path, bytes: &[u8]) -> Result<u64> {
    if name.extension().is_some_and(|extension| extension == "gz") {
        return Ok(bytes.len() as u64);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_budget() {
        let places = [
            "blockyard-web-teach.wasm",
            "blockyard-web-workbench.wasm",
            "blockyard-worker_bg.wasm",
            "blockyard-questions.js",
            "blockyard-report.js",
            "blockyard-gpu.js",
            "python/pyodide.asm.wasm.gz",
            "programs/a.py",
            "samples/a.jsonl.gz",
            "service-worker.js",
            "typeface/sans-regular.woff2",
            "blockyard-web_bg.wasm",
            "boot.js",
        ];
        assert_eq!(places.map(|name| budget_of(Path::new(name))), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11]);
    }

    #[test]
    fn what_is_packed_already_is_not_packed_again() {
        let zeros = vec![0; 100_000];
        assert!(packed_size(Path::new("zeros.bin"), &zeros).unwrap() < 1_000);
        assert_eq!(packed_size(Path::new("zeros.jsonl.gz"), &zeros).unwrap(), 100_000);
    }
}
