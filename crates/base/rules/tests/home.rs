//! Only this crate has PyTorch's numbers and the names of its releases: no other source of the product has
//! them as literals.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Sources that have such a literal for another reason: the file, how many literals, and the reason.
const OTHER_NUMBERS: [(&str, usize, &str); 20] = [
    ("crates/core/allocator/src/error.rs", 2, "units of sizes in messages"),
    ("crates/ends/cli/src/bench/sections.rs", 4, "sizes of measured requests"),
    ("crates/base/device/src/virtual_device.rs", 1, "the driver's alignment"),
    (
        "crates/base/device/wgpu/src/patterns.rs",
        1,
        "the alignment of WebGPU's buffers in tests of block data",
    ),
    ("crates/show/figure/src/holders/query.rs", 1, "a unit that a reader types"),
    ("crates/show/figure/src/stage/ruler.rs", 1, "the first step of a ruler"),
    ("crates/show/figure/src/timeline/draw.rs", 1, "the least range of an axis"),
    ("crates/show/figure/src/timeline/partial.rs", 1, "the least range of an axis"),
    ("crates/ask/lab/src/setting_search.rs", 1, "values of a setting that a search tries"),
    ("crates/core/pytorch/src/snapshot/container.rs", 1, "how much of a file is read"),
    ("crates/core/pytorch/src/snapshot/html.rs", 1, "how much of a file is searched"),
    ("crates/base/record/src/recording/recorder.rs", 1, "events between two saved states"),
    ("crates/programs/torch/src/generator.rs", 1, "a number of elements"),
    ("crates/programs/torch/src/limits.rs", 1, "a number of parts"),
    ("crates/programs/torch/src/ops/conv.rs", 1, "a number of channels"),
    ("crates/programs/torch/src/ops/norm/batch.rs", 3, "threads of a kernel"),
    ("crates/programs/torch/src/ops/reduce/scratch.rs", 1, "threads of a kernel"),
    ("crates/programs/torch/src/ops/sort.rs", 1, "counters of a kernel"),
    ("crates/ends/wheel/src/file.rs", 1, "a reader's buffer"),
    ("web/src/workload/draft.rs", 1, "how much text a browser keeps"),
];

/// Crates that have numbers of GPUs, NVIDIA's libraries or other allocators instead of PyTorch's.
const NUMBERS_OF_OTHERS: [&str; 3] =
    ["crates/base/gpus/", "crates/programs/standin/", "crates/core/replay/src/rivals"];

/// Sources that name a release: the file, how many lines, and the reason.
const OTHER_RELEASES: [(&str, usize, &str); 7] = [
    ("crates/core/allocator/src/lib.rs", 2, "where the allocator departs from a release"),
    ("crates/core/allocator/src/host.rs", 1, "where the allocator departs from a release"),
    ("crates/core/allocator/src/host/stats.rs", 1, "where the allocator departs from a release"),
    ("crates/programs/dry-run/src/torch.rs", 1, "an example of a version"),
    ("crates/core/pytorch/src/read.rs", 1, "which release a recording's keys are of"),
    ("crates/programs/torch/src/lib.rs", 1, "the release whose operators were recorded"),
    ("web/src/story.rs", 1, "the release that was measured"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The sources of the product: those below `src` of `crates` and `web`, without this crate, tests and models
/// of tests.
fn sources() -> BTreeMap<String, String> {
    let root = root();
    let mut found = BTreeMap::new();
    let mut folders = vec![root.join("crates"), root.join("web")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
            let last = name.rsplit('/').next().unwrap_or_default();
            if path.is_dir() {
                let is_other =
                    ["tests", "benches", "examples", "target", "dist", "node_modules"].contains(&last);
                if !is_other && name != "crates/base/rules" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|end| end == "rs")
                && !["tests.rs", "model.rs"].contains(&last)
            {
                let text = fs::read_to_string(&path).unwrap();
                let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                found.insert(name, product.to_owned());
            }
        }
    }
    assert!(found.len() > 500, "only {} sources", found.len());
    found
}

/// The words and signs of a line of code, without its texts and comments.
fn tokens(line: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut letters = line.chars().peekable();
    let mut is_word = false;
    while let Some(letter) = letters.next() {
        if letter == '"' {
            while let Some(inner) = letters.next() {
                match inner {
                    '\\' => _ = letters.next(),
                    '"' => break,
                    _ => {}
                }
            }
            is_word = false;
        } else if letter == '/' && letters.peek() == Some(&'/') {
            break;
        } else if letter.is_ascii_alphanumeric() || letter == '_' {
            if is_word && let Some(last) = tokens.last_mut() {
                last.push(letter);
            } else {
                tokens.push(letter.to_string());
            }
            is_word = true;
        } else {
            is_word = false;
            if !letter.is_whitespace() {
                tokens.push(letter.to_string());
            }
        }
    }
    tokens
}

/// A whole number, with or without its type.
fn number(token: &str) -> Option<u64> {
    let plain = token.replace('_', "");
    let digits = plain.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, kind) = plain.split_at(digits);
    let is_number = ["", "u8", "u16", "u32", "u64", "u128", "usize", "i32", "i64", "isize"].contains(&kind);
    if is_number { digits.parse().ok() } else { None }
}

/// How many of PyTorch's numbers a line has: 512 bytes, and 1, 2, 10 and 20 MiB however they are written.
fn numbers_in(line: &str) -> usize {
    let tokens = tokens(line);
    let at = |index: usize| tokens.get(index).map_or("", String::as_str);
    let is_mebibytes = |count: u64| [1, 2, 10, 20].contains(&count);
    let is_one = |index: usize| {
        let Some(value) = number(at(index)) else { return false };
        let before = |back: usize| index.checked_sub(back).map_or("", at);
        let is_shifted = at(index + 1) == "<" && at(index + 2) == "<" && number(at(index + 3)) == Some(20);
        let is_in_mib = before(1) == "(" && before(2) == "mib" && at(index + 1) == ")";
        let is_in_units = before(1) == "(" && ["kib", "mib", "gib"].contains(&before(2));
        let is_part = before(1) == "." || (at(index + 1) == "." && number(at(index + 2)).is_some());
        let is_whole = value == 512 || (value.is_multiple_of(1 << 20) && is_mebibytes(value >> 20));
        (is_shifted || is_in_mib) && is_mebibytes(value) || is_whole && !is_in_units && !is_part
    };
    (0..tokens.len()).filter(|index| is_one(*index)).count()
}

/// Panics with the list of all sources in which the found count differs from the count in the exceptions.
fn check(found: &BTreeMap<String, Vec<String>>, exceptions: &[(&str, usize, &str)]) {
    let allowed: BTreeMap<&str, usize> = exceptions.iter().map(|(file, count, _)| (*file, *count)).collect();
    let mut wrong: Vec<String> = found
        .iter()
        .filter(|(file, lines)| allowed.get(file.as_str()).copied().unwrap_or(0) != lines.len())
        .map(|(file, lines)| format!("{file}: {}\n    {}", lines.len(), lines.join("\n    ")))
        .collect();
    let stale = allowed.keys().filter(|file| !found.contains_key(**file));
    wrong.extend(stale.map(|file| format!("{file}: has none any more")));
    assert!(
        wrong.is_empty(),
        "use `blockyard_rules`, or name the reason in this file:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn no_number_of_pytorch_stands_outside_of_the_rules() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in sources() {
        if NUMBERS_OF_OTHERS.iter().any(|folder| file.starts_with(folder)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            for _ in 0..numbers_in(line) {
                found.entry(file.clone()).or_default().push(format!("{}: {}", index + 1, line.trim()));
            }
        }
    }
    check(&found, &OTHER_NUMBERS);
}

#[test]
fn no_release_is_named_outside_of_the_rules() {
    let oldest = blockyard_rules::Release::ALL[0].name();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in sources() {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| line.contains(oldest)) {
            found.entry(file.clone()).or_default().push(format!("{}: {}", index + 1, line.trim()));
        }
    }
    check(&found, &OTHER_RELEASES);
}

/// Whether a line of code has a release that is written out, or compares one: `Release::V2_12`,
/// `release >= other`, `torch.version_pair() >= (2, 9)`, `.is_at_least(`.
fn decides_by_release(line: &str) -> bool {
    let tokens = tokens(line);
    let is_version = |token: &String| {
        token.strip_prefix("V2_").is_some_and(|minor| minor.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_compared = |index: usize| {
        let at = |after: usize| tokens.get(index + after).map_or("", String::as_str);
        let after = if at(1) == "(" && at(2) == ")" { 3 } else { 1 };
        ["release", "version_pair"].contains(&at(0)) && ["<", ">"].contains(&at(after))
    };
    tokens.iter().any(|token| is_version(token) || token == "is_at_least")
        || (0..tokens.len()).any(is_compared)
}

/// Sources that decide by a release: the file, how many lines, and the reason.
const OTHER_DECISIONS: [(&str, usize, &str); 1] = [(
    "crates/programs/dry-run/src/run.rs",
    1,
    "the name of a variable since PyTorch 2.9, before the first release with rules",
)];

#[test]
fn nothing_decides_by_a_release_outside_of_the_rules() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in sources() {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| decides_by_release(line)) {
            found.entry(file.clone()).or_default().push(format!("{}: {}", index + 1, line.trim()));
        }
    }
    check(&found, &OTHER_DECISIONS);
}

#[test]
fn decisions_by_a_release_are_found_however_they_are_written() {
    for line in [
        "if self.config.release() >= Release::V2_15 && is_large {",
        "Self::V2_14 => OomAdvice::None,",
        "if release > other {",
        "config.release().is_at_least(other)",
    ] {
        assert!(decides_by_release(line), "{line}");
    }
    for line in [
        "release().expandable_advice()",
        "\"Release::V2_15\" // V2_15",
        "Some(release) => release,",
        "let release: Vec<u8>",
    ] {
        assert!(!decides_by_release(line), "{line}");
    }
}

/// Documents that name the first and the last release.
const DOCUMENTS: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "docs/plugin.md",
    "docs/releases.md",
    "docs/words.md",
    "crates/core/allocator/src/lib.rs",
    "crates/core/allocator/src/host.rs",
];

#[test]
fn documents_name_the_first_and_the_last_release() {
    let [first, .., last] = blockyard_rules::Release::ALL.map(blockyard_rules::Release::name);
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document)).unwrap();
        assert!(text.contains(&format!("{first} to {last}")), "{document}");
    }
}

#[test]
fn numbers_are_found_however_they_are_written() {
    let cases = [
        ("const UNIT: u64 = 512;", 1),
        ("size.next_multiple_of(512_u64)", 1),
        ("Bytes::mib(1), Bytes::mib(20) and Bytes::mib(64)", 2),
        ("2 << 20; 10u64 << 20; 64 << 20", 2),
        ("1_048_576 + 2_097_152 + 20971520", 3),
        ("Bytes::kib(512)", 0),
        ("let text = \"512 \\\" 1 << 20\"; // 512", 0),
        ("V512 + x512 + 5120 + 1.512 + 512.5", 0),
    ];
    for (line, count) in cases {
        assert_eq!(numbers_in(line), count, "{line}");
    }
}
