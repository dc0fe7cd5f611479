//! Sentences that a reader would have to read twice: the worst of them are patterns, and `cargo xtask prose`
//! finds these in documents, comments, texts of errors and help.
//!
//! This check is ours, because `vale`, which does the same, comes from no package registry as a program: its
//! packages download it.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use regex::{Captures, Regex, RegexBuilder};

use crate::workspace::Workspace;

/// Patterns of English that are correct and hard to read, as regular expressions in which letters are small or
/// large: the pattern, places at which the same words are fine, and what to write instead.
const PATTERNS: [(&str, Option<&str>, &str); 13] = [
    (
        r"\bbehind\b",
        Some(r"\bbehind (?:an?|the|one|its|our|their) (?:same |common )?(?:C ABI|lock|trait|interface)\b"),
        "after, under; `behind` is for an interface or a lock",
    ),
    (
        r"\b(?:is|are|was|were) there\b",
        Some(r"\b(?:is|are|was|were) there (?:an?|any|no)\b"),
        "exists, is installed, is known",
    ),
    (
        r"\bof (?:its|their|his|our) own(?:[.,;:)?]|$| (?:and|or|for|that|which|in|on|with|has|is|are|from|beside|here|below)\b)",
        None,
        "its own NOUN, a separate NOUN",
    ),
    (r"\bis what\b", None, "the noun and a verb"),
    (
        r"\bso (?:many|much)\b",
        Some(r"\bso (?:many|much)\b.* (?:that|as)\b"),
        "this many, a number of; `so many` is for `so many that`",
    ),
    (r"\banew\b", None, "again"),
    (
        r"\bst(?:ands?|ood) (?:in|on|at|beside|above|below|there|before|after)\b",
        Some(r"\bstands? in for\b"),
        "is",
    ),
    (r"\b(?:is|are) gone\b", None, "does not exist any more, was freed"),
    (r"\bsays? of\b", None, "says about"),
    (
        r"\b(?:is|are|was|were) no \w+",
        Some(
            r"\bthere (?:is|are|was|were) no \w+|\b(?:is|are|was|were) no (?:longer|more|less|sooner|cure)\b",
        ),
        "is not a NOUN",
    ),
    (r"\btaken (?:to be|to have)\b", None, "is assumed to be"),
    (
        r"\bwhat [\w' ]{1,40} (?:comes?|came) to\b|\bwhat (?:comes|came) of\b",
        None,
        "the result, the verdict; the noun that says what comes out",
    ),
    (r"\bas far as [\w' ]{1,30} tells?\b|\b(?:does|do|did) not tell\b", None, "says, shows, is known from"),
];

/// A comment, a letter, or a string literal of Rust, of which `words` is the text.
const TOKEN: &str = r##"//[^\n]*|'(?:\\.|[^\\'])'|r#+"(?<raw>(?s:.*?))"#|"(?<words>(?:[^"\\]|\\(?s:.))*)""##;

/// Files that are not checked: their sentences were not revised yet, or are a record of their time.
const NOT_READ: [&str; 4] = ["docs/releases.md", "docs/benchmarks/", "CHANGELOG.md", "LICENSE"];

/// Where Python is checked: the packages that users install, the part of a dry run in the program's process,
/// and scripts.
const CHECKED_PYTHON: [&str; 3] = ["/python/blockyard", "crates/programs/dry-run/src/runner/", "scripts/"];

/// Checks the sentences of the repository.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let patterns = Patterns::compile()?;
    let (mut found, mut files) = (Vec::new(), 0);
    for name in workspace.listed_files()?.iter().filter(|name| is_read(name)) {
        let Ok(text) = fs::read_to_string(workspace.root().join(name)) else { continue };
        files += 1;
        let places = patterns.find(name, &text);
        found.extend(places.into_iter().map(|(line, words)| format!("{name}:{line}: {words}")));
    }
    if !found.is_empty() {
        bail!("sentences that are hard to read:\n  {}", found.join("\n  "));
    }
    println!("    {files} files have none of {} patterns", PATTERNS.len());
    Ok(())
}

/// Whether the sentences of a file are checked. Those of tests are not: only developers read them.
fn is_read(name: &str) -> bool {
    let is_test = name.starts_with("tests/") || name.contains("/tests/") || name.ends_with("tests.rs");
    let is_checked = match ending(name) {
        "md" | "rs" => true,
        "py" => CHECKED_PYTHON.iter().any(|folder| name.contains(folder)),
        _ => false,
    };
    is_checked && !is_test && !NOT_READ.iter().any(|begin| name.starts_with(begin))
}

/// `rs` of `src/lib.rs`.
fn ending(name: &str) -> &str {
    Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default()
}

/// The compiled patterns.
struct Patterns {
    english: Vec<(Regex, Option<Regex>, &'static str)>,
    token: Regex,
    /// Code in backticks and values in braces.
    code: Regex,
}

impl Patterns {
    fn compile() -> Result<Self> {
        let regex = |text: &str| RegexBuilder::new(text).case_insensitive(true).build();
        let compiled = PATTERNS
            .map(|(found, plain, write)| anyhow::Ok((regex(found)?, plain.map(regex).transpose()?, write)));
        let english = compiled.into_iter().collect::<Result<_>>()?;
        Ok(Self { english, token: Regex::new(TOKEN)?, code: Regex::new(r"`[^`]*`|\{[^}]*\}")? })
    }

    /// The line of each match in a file, with the matched words and the advice.
    fn find(&self, name: &str, text: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for paragraph in self.paragraphs(name, text) {
            // As many bytes stand for the code, so that the offsets of lines stay right.
            let blank = |code: &Captures<'_>| "`".repeat(code[0].len());
            let text = self.code.replace_all(&paragraph.text, blank);
            for (pattern, plain, write) in &self.english {
                for place in pattern.find_iter(&text) {
                    let mut plain = plain.iter().flat_map(|plain| plain.find_iter(&text));
                    if !plain.any(|plain| plain.start() <= place.start() && place.end() <= plain.end()) {
                        let words = format!("\"{}\": {write}", place.as_str());
                        found.push((paragraph.line_of(place.start()), words));
                    }
                }
            }
        }
        found
    }

    /// The prose of a file.
    fn paragraphs(&self, name: &str, text: &str) -> Vec<Paragraph> {
        let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        match ending(name) {
            "rs" => {
                let shipped = text.find("\n#[cfg(test)]\nmod tests {").map_or(text, |end| &text[..end]);
                let mut found = markdown(shipped.lines().enumerate().map(|(index, line)| {
                    let comment = line.trim_start();
                    let words = ["///", "//!", "//"].iter().find_map(|sign| comment.strip_prefix(sign));
                    (index + 1, words.unwrap_or_default())
                }));
                found.extend(self.strings(shipped));
                found
            }
            "py" => {
                let mut is_inside = false;
                markdown(numbered.map(|(number, line)| {
                    let quotes = line.matches("\"\"\"").count();
                    let words = if is_inside || quotes > 0 { line.trim_start() } else { "" };
                    is_inside ^= quotes % 2 == 1;
                    (number, words)
                }))
            }
            _ => markdown(numbered),
        }
    }

    /// The string literals of a Rust file that have several words.
    fn strings(&self, text: &str) -> Vec<Paragraph> {
        let mut all = Vec::new();
        for token in self.token.captures_iter(text) {
            let Some(words) = token.name("words").or(token.name("raw")) else { continue };
            let line = text[..words.start()].matches('\n').count() + 1;
            let mut paragraph = Paragraph::default();
            for (index, part) in words.as_str().lines().enumerate() {
                paragraph.add(line + index, part.trim().trim_end_matches('\\').trim_end());
            }
            all.push(paragraph);
        }
        all.retain(|paragraph| paragraph.text.contains(' '));
        all
    }
}

/// Lines of prose that belong together, without code.
#[derive(Debug, Default, PartialEq)]
struct Paragraph {
    text: String,
    /// For each line, its offset in `text` and its number in the file.
    lines: Vec<(usize, usize)>,
}

impl Paragraph {
    fn line_of(&self, at: usize) -> usize {
        self.lines.iter().take_while(|(begin, _)| *begin <= at).last().map_or(0, |(_, line)| *line)
    }

    fn add(&mut self, number: usize, line: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.lines.push((self.text.len(), number));
        self.text.push_str(line);
    }
}

/// Paragraphs, list items and rows of tables; blocks of code are left out.
fn markdown<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Paragraph> {
    let mut all = vec![Paragraph::default()];
    let mut is_code = false;
    for (number, line) in lines {
        let words = line.trim();
        if words.starts_with("```") {
            is_code = !is_code;
        }
        let is_left_out = is_code || words.starts_with("```") || line.starts_with("    ") || words.is_empty();
        let begins = ["|", "-", "*", "#"].iter().any(|sign| words.starts_with(sign));
        if is_left_out || begins {
            all.push(Paragraph::default());
        }
        if let (false, Some(last)) = (is_left_out, all.last_mut()) {
            last.add(number, words);
        }
    }
    all.retain(|paragraph| !paragraph.text.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<(usize, String)> {
        Patterns::compile().unwrap().find(name, text)
    }

    fn words(name: &str, text: &str) -> Vec<(usize, String)> {
        let words = found(name, text).into_iter();
        words.map(|(line, words)| (line, words.split('"').nth(1).unwrap().to_owned())).collect()
    }

    #[test]
    fn documents_are_read_by_paragraphs() {
        let text = "A block lies behind\nanother.\n\n- Each has a color of\n  its own.\n\n    code behind\n\n```\nbehind\n```\n| `behind` | is gone. |\n";
        let expected = [(1, "behind"), (4, "of its own."), (12, "is gone")];
        assert_eq!(words("docs/a.md", text), expected.map(|(line, words)| (line, words.to_owned())));
    }

    #[test]
    fn comments_and_texts_of_a_program_are_read_and_its_code_is_not() {
        let text = "/// The block\n/// behind it.\nfn behind() {\n    // Behind the\n    let a = '\"'; let behind = \"no block is\\\n        there now\";\n    \
                    error(r#\"a \"block\" that stands in {behind}\"#, \"behind\");\n}\n\n#[cfg(test)]\nmod tests {\n    \"is it behind\"\n}\n";
        let expected = [(2, "behind"), (4, "Behind"), (5, "is there"), (7, "stands in")];
        assert_eq!(words("a/src/a.rs", text), expected.map(|(line, words)| (line, words.to_owned())));
    }

    #[test]
    fn python_of_the_product_is_read() {
        for name in [
            "crates/ends/wheel/python/blockyard/_files.py",
            "crates/programs/dry-run/src/runner/blockyard_dry_run/ranks.py",
            "crates/programs/dry-run/src/runner/children/sitecustomize.py",
            "scripts/layers.py",
        ] {
            assert!(is_read(name), "{name}");
        }
        assert!(!is_read("crates/ends/wheel/tests/test_lab.py") && !is_read("examples/programs/mnist.py"));
    }

    #[test]
    fn docstrings_are_read() {
        let text = "\"\"\"What is what one sees.\"\"\"\nbehind = 1\ndef f():\n    \"\"\"Opens\n    anew.\n    \"\"\"\n    is_behind\n";
        let found = words("crates/ends/wheel/python/blockyard/a.py", text);
        assert_eq!(found, [(1, "is what".to_owned()), (5, "anew".to_owned())]);
    }

    #[test]
    fn results_are_named() {
        let text = "What a run came to, as far as its trace tells. A file does not tell\nthe limit.\n";
        let expected = [(1, "What a run came to"), (1, "as far as its trace tells"), (1, "does not tell")];
        assert_eq!(words("docs/a.md", text), expected.map(|(line, words)| (line, words.to_owned())));
    }

    #[test]
    fn plain_sentences_are_not_found() {
        for plain in [
            "The allocator behind a lock.",
            "Is there a block? There is one.",
            "So many blocks are live that no segment is free.",
            "A segment of its own size, and that one block.",
            "A helper that stands in for the driver.",
        ] {
            assert_eq!(found("a.md", plain), [], "{plain}");
        }
    }
}
