//! `cargo xtask prose`: sentences that a reader would have to read twice, and long lines of documents.
//!
//! It is ours, because `vale`, which does the same, comes from no package registry as a program.

use std::fs;

use anyhow::{Result, ensure};
use regex::Regex;

use crate::workspace::Workspace;

/// Words and patterns, and what to write instead. Words in the group `plain` are fine.
const PATTERNS: [(&str, &str); 7] = [
    (
        r"(?<plain>\bbehind (?:an?|the|one|its|our|their) (?:same |common )?(?:C ABI|lock|trait|interface)\b)|\bbehind\b",
        "after, under; `behind` is for an interface or a lock",
    ),
    (
        r"(?<plain>\b(?:is|are|was|were) there (?:an?|any|no)\b)|\b(?:is|are|was|were) there\b",
        "exists, is installed, is known",
    ),
    (
        r"\bof (?:its|their|his|our) own(?:[.,;:)?]|$| (?:and|or|for|that|which|in|on|with|has|is|are|from|beside|here|below)\b)",
        "its own NOUN, a separate NOUN",
    ),
    (r"\bis what\b", "the noun and a verb"),
    (
        r"(?<plain>\bstands? in for\b)|\bst(?:ands?|ood) (?:in|on|at|beside|above|below|there|before|after)\b",
        "is",
    ),
    (
        r"(?<plain>\bthere (?:is|are|was|were) no\b|\b(?:is|are|was|were) no (?:longer|more|less|sooner|cure)\b)|\b(?:is|are|was|were) no \w+",
        "is not a NOUN",
    ),
    (r"\b(?:river|ledger|tenants?|troubles?|heeds?)\b", "the word of docs/words.md"),
];

/// The longest line of a document, as `max_width` of rustfmt.toml. Tables and code are not broken.
const MAX_COLUMNS: usize = 110;

/// Files that are not checked: records of their time, results that a command writes, and lessons, whose
/// paragraphs are lines.
const NOT_READ: [&str; 7] = [
    "docs/releases.md",
    "docs/benchmarks/",
    "docs/speed.md",
    "CHANGELOG.md",
    "web/lessons/",
    "web/src/view/make_lesson/",
    "tests/",
];

/// Checks the sentences of the repository.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let patterns = Patterns::compile()?;
    let (mut found, mut files) = (Vec::new(), 0);
    for name in workspace.listed_files()?.iter().filter(|name| is_read(name)) {
        let Ok(text) = fs::read_to_string(workspace.root().join(name)) else { continue };
        files += 1;
        let places = patterns.find(name, &text).into_iter();
        found.extend(places.map(|(line, words, advice)| format!("{name}:{line}: \"{words}\": {advice}")));
    }
    ensure!(found.is_empty(), "sentences that are hard to read:\n  {}", found.join("\n  "));
    println!("    {files} files have none of {} patterns", PATTERNS.len());
    Ok(())
}

/// Whether the sentences of a file are checked. Those of tests are not: only developers read them.
fn is_read(name: &str) -> bool {
    let is_test = name.contains("/tests/") || name.ends_with("tests.rs") || name == "xtask/src/prose.rs";
    matches!(ending(name), "md" | "py" | "rs")
        && !is_test
        && !NOT_READ.iter().any(|begin| name.starts_with(begin))
}

fn ending(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

/// The compiled patterns.
struct Patterns {
    english: Vec<(Regex, &'static str)>,
    /// Code in backticks and values in braces.
    code: Regex,
    /// A text of Rust that is on one line.
    literal: Regex,
}

impl Patterns {
    fn compile() -> Result<Self> {
        let english =
            PATTERNS.iter().map(|(found, write)| Ok((Regex::new(&format!("(?i){found}"))?, *write)));
        Ok(Self {
            english: english.collect::<Result<_>>()?,
            code: Regex::new(r"`[^`]*`|\{[^}]*\}")?,
            literal: Regex::new(r#""((?:[^"\\]|\\.)*)""#)?,
        })
    }

    /// The number of each line that is found, its words, and the advice.
    fn find(&self, name: &str, text: &str) -> Vec<(usize, String, &'static str)> {
        let shipped = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let (is_document, is_python) = (ending(name) == "md", ending(name) == "py");
        let (mut found, mut is_code, mut is_docstring) = (Vec::new(), false, false);
        for (number, line) in (1..).zip(shipped.lines()) {
            let start = line.trim_start();
            is_code ^= start.starts_with("```");
            let quotes = line.matches("\"\"\"").count();
            let words = if is_document {
                if is_code || line.starts_with("    ") { String::new() } else { line.to_owned() }
            } else if is_python && (is_docstring || quotes > 0 || start.starts_with('#')) {
                start.to_owned()
            } else if start.starts_with("//") {
                start.trim_start_matches(['/', '!']).to_owned()
            } else {
                let literals = self.literal.captures_iter(line).map(|literal| literal[1].to_owned());
                literals.filter(|text| text.contains(' ')).collect::<Vec<_>>().join(". ")
            };
            is_docstring ^= is_python && quotes % 2 == 1;
            if is_document && !start.starts_with('|') && words.chars().count() > MAX_COLUMNS {
                found.push((number, words.chars().take(30).collect(), "a line of 110 columns at most"));
            }
            let words = self.code.replace_all(&words, "``");
            for (pattern, write) in &self.english {
                let places = pattern.captures_iter(&words).filter(|place| place.name("plain").is_none());
                found.extend(places.map(|place| (number, place[0].to_owned(), *write)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<(usize, String)> {
        let found = Patterns::compile().unwrap().find(name, text);
        found.into_iter().map(|(line, words, _)| (line, words)).collect()
    }

    #[test]
    fn documents_comments_and_texts_of_a_program_are_read_and_code_is_not() {
        let document =
            "A block lies behind another.\n\n    code behind\n\n```\nbehind\n```\n| `behind` | is there. |\n";
        assert_eq!(found("a.md", document), [(1, "behind".to_owned()), (8, "is there".to_owned())]);
        let program = "/// The block behind it.\nfn behind() {\n    error(\"behind\", \"that stands in {behind}\");\n}\n";
        assert_eq!(found("a.rs", program), [(1, "behind".to_owned()), (3, "stands in".to_owned())]);
        let python = "def behind():\n    \"\"\"What is there.\n\n    It lies behind.\"\"\"\n    is_there = behind  # code\n";
        assert_eq!(found("a.py", python), [(2, "is there".to_owned()), (4, "behind".to_owned())]);
        let long = "[word](a.md) `code` ".repeat(6);
        assert_eq!(found("a.md", &long), [(1, long[..30].to_owned())]);
    }

    #[test]
    fn plain_sentences_are_not_found() {
        let plain = "The allocator behind a lock.\nIs there a block?\nIt stands in for a GPU.\n";
        assert_eq!(found("a.md", plain), []);
    }
}
