//! Sentences that a reader would have to read twice: the worst of them are patterns, and `cargo xtask prose`
//! finds these in documents, comments, texts of errors and help.
//!
//! This check is ours, because `vale`, which does the same, comes from no package registry as a program: its
//! packages download it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use regex::{Regex, RegexBuilder};

use crate::workspace::Workspace;

/// A pattern of English that is correct and hard to read, as a regular expression in which letters are small
/// or large.
struct Pattern {
    found: &'static str,
    /// A pattern of places at which the same words are fine.
    plain: Option<&'static str>,
    /// The advice: what to write instead.
    write: &'static str,
}

const fn pattern(found: &'static str, write: &'static str) -> Pattern {
    Pattern { found, plain: None, write }
}

const fn pattern_but(found: &'static str, plain: &'static str, write: &'static str) -> Pattern {
    Pattern { found, plain: Some(plain), write }
}

const PATTERNS: [Pattern; 25] = [
    pattern_but(
        r"\bbehind\b",
        r"\bbehind (?:an?|the|one|its|our|their) (?:same |common )?(?:C ABI|lock|trait|interface)\b",
        "after, under; `behind` is for an interface or a lock",
    ),
    pattern_but(
        r"\b(?:is|are|was|were) there\b",
        r"\b(?:is|are|was|were) there (?:an?|any|no)\b",
        "exists, is installed, is known",
    ),
    pattern(r"\bthat one(?:[.,;:)?]|$| (?:is|was|has|does|gives|saves)\b)", "the noun"),
    pattern(
        r"\bof (?:its|their|his|our) own(?:[.,;:)?]|$| (?:and|or|for|that|which|in|on|with|has|is|are|from|beside|here|below)\b)",
        "its own NOUN, a separate NOUN",
    ),
    pattern(
        r"\b(?:comes?|came) to (?:its|their|an?) end\b|\b(?:comes?|came) to (?:no|an?|the|other|different) (?:result|statistic|sum|number)s?\b|\bwould have come to\b|\bcame to (?:exceed|be)\b",
        "ends, is, makes",
    ),
    pattern(r"\bis what\b", "the noun and a verb"),
    pattern_but(
        r"\bso (?:many|much)\b",
        r"\bso (?:many|much)\b.* (?:that|as)\b",
        "this many, a number of; `so many` is for `so many that`",
    ),
    pattern(r"\brests? on (?:no|an?)\b", "is an unverified estimate, depends on"),
    pattern(r"\bwhoever\b", "a reader who, the caller that"),
    pattern(r"\bbesides[.,;:]", "also, too"),
    pattern(r"\banew\b", "again"),
    pattern(r"\blikewise\b", "also"),
    pattern(r"\ball the same[.,;:]", "still"),
    pattern(r"\btells (?:what|whether|how|which|why|where|when|of)\b", "says, reports"),
    pattern_but(
        r"\bst(?:ands?|ood) (?:in|on|at|beside|above|below|there|before|after)\b",
        r"\bstands? in for\b",
        "is",
    ),
    pattern(r"\b(?:hold|holds|held) against\b", "compared with"),
    pattern(r"\bspeaks? of\b", "is about"),
    pattern(r"\b(?:less|more) than nothing\b", "negative, not zero"),
    pattern(r"\b(?:is|are) gone\b", "does not exist any more, was freed"),
    pattern(r"\bsays? of\b", "says about"),
    pattern_but(
        r"\b(?:is|are|was|were) no \w+",
        r"\bthere (?:is|are|was|were) no \w+|\b(?:is|are|was|were) no (?:longer|more|less|sooner|cure)\b",
        "is not a NOUN",
    ),
    pattern(r"\btaken (?:to be|to have)\b", "is assumed to be"),
    pattern(
        r"\bwhat [\w' ]{1,40} (?:comes?|came) to\b|\bwhat (?:comes|came) of\b",
        "the result, the verdict; the noun that says what comes out",
    ),
    pattern(r"\bas far as [\w' ]{1,30} tells?\b|\b(?:does|do|did) not tell\b", "says, shows, is known from"),
    pattern(r"\bfor ever\b", "without an end, always"),
];

/// Files that are not checked: their sentences were not revised yet, or are a record of their time.
const NOT_READ: [&str; 4] = ["docs/releases.md", "docs/benchmarks/", "CHANGELOG.md", "LICENSE"];

/// Where Python is checked: the packages that users install, the part of a dry run in the program's process,
/// and scripts.
const CHECKED_PYTHON: [&str; 3] = ["/python/blockyard", "crates/programs/dry-run/src/runner/", "scripts/"];

/// Checks the sentences of the repository.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let listed = workspace.program("git").args(["ls-files", "-z"]).output().context("cannot run git")?;
    ensure!(listed.status.success(), "git does not list the files of the repository");
    let listed = String::from_utf8(listed.stdout)?;
    let patterns = Patterns::compile()?;
    let (mut found, mut files) = (Vec::new(), 0);
    for name in listed.split('\0').filter(|name| is_read(name)) {
        let Ok(text) = fs::read_to_string(workspace.root().join(name)) else { continue };
        files += 1;
        let places = patterns.find(&paragraphs(name, &text));
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

struct Patterns(Vec<(Regex, Option<Regex>, &'static str)>);

impl Patterns {
    fn compile() -> Result<Self> {
        let regex = |text: &str| RegexBuilder::new(text).case_insensitive(true).build();
        let compiled = PATTERNS.iter().map(|pattern| {
            let plain = pattern.plain.map(regex).transpose()?;
            anyhow::Ok((regex(pattern.found)?, plain, pattern.write))
        });
        Ok(Self(compiled.collect::<Result<_>>()?))
    }

    /// The line of each match, with the matched words and the advice.
    fn find(&self, paragraphs: &[Paragraph]) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for paragraph in paragraphs {
            for (pattern, plain, write) in &self.0 {
                for place in pattern.find_iter(&paragraph.text) {
                    let mut plain = plain.iter().flat_map(|plain| plain.find_iter(&paragraph.text));
                    if plain.any(|plain| plain.start() <= place.start() && place.end() <= plain.end()) {
                        continue;
                    }
                    found
                        .push((paragraph.line_of(place.start()), format!("\"{}\": {write}", place.as_str())));
                }
            }
        }
        found
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

/// The prose of a file.
fn paragraphs(name: &str, text: &str) -> Vec<Paragraph> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut all = if ending(name) == "rs" {
        let shipped = text.find("\n#[cfg(test)]\nmod tests {").map_or(text, |end| &text[..end]);
        let comments = shipped.lines().enumerate().map(|(index, line)| {
            let comment = line.trim_start();
            let words = ["///", "//!", "//"].iter().find_map(|sign| comment.strip_prefix(sign));
            (index + 1, words.unwrap_or_default())
        });
        let mut found = markdown(comments);
        found.extend(strings(shipped));
        found
    } else if ending(name) == "py" {
        let mut is_inside = false;
        markdown(numbered.map(|(number, line)| {
            let quotes = line.matches("\"\"\"").count();
            let words = if is_inside || quotes > 0 { line.trim_start() } else { "" };
            is_inside ^= quotes % 2 == 1;
            (number, words)
        }))
    } else {
        markdown(numbered)
    };
    for paragraph in &mut all {
        blank_code(&mut paragraph.text);
    }
    all
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

/// The string literals of a Rust file that have several words.
fn strings(text: &str) -> Vec<Paragraph> {
    let mut all = Vec::new();
    let mut rest = text;
    let line_at = |rest: &str| text[..text.len() - rest.len()].matches('\n').count() + 1;
    while let Some(begin) = rest.find(['"', '/', '\'']) {
        rest = &rest[begin..];
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            rest = &rest[3..];
        } else if let Some(after) = rest.strip_prefix('"') {
            let line = line_at(rest);
            let hashes =
                text[..text.len() - rest.len()].bytes().rev().take_while(|byte| *byte == b'#').count();
            let close = format!("\"{}", "#".repeat(hashes));
            let mut end = 0;
            while let Some(sign) = after[end..].find(['\\', '"']) {
                end += sign;
                if hashes == 0 && after[end..].starts_with('\\') {
                    end += 1 + after[end + 1..].chars().next().map_or(0, char::len_utf8);
                } else if after[end..].starts_with(&close) {
                    break;
                } else {
                    end += 1;
                }
            }
            let mut paragraph = Paragraph::default();
            for (index, part) in after[..end].lines().enumerate() {
                paragraph.add(line + index, part.trim().trim_end_matches('\\').trim_end());
            }
            if paragraph.text.contains(' ') {
                all.push(paragraph);
            }
            rest = after.get(end + close.len()..).unwrap_or_default();
        } else {
            rest = &rest[1..];
        }
    }
    all
}

/// Puts spaces in place of code in backticks and of values in braces.
fn blank_code(text: &mut String) {
    let mut closing = None;
    let mut blanked = String::with_capacity(text.len());
    for letter in text.chars() {
        match (closing, letter) {
            (None, '`') => closing = Some('`'),
            (None, '{') => closing = Some('}'),
            (Some(close), _) if close == letter => closing = None,
            // The replacement has equally many bytes, so that the offsets of lines stay right.
            (Some(_), _) => {
                blanked.extend(std::iter::repeat_n('_', letter.len_utf8()));
                continue;
            }
            (None, _) => {}
        }
        blanked.push(letter);
    }
    *text = blanked;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<(usize, String)> {
        Patterns::compile().unwrap().find(&paragraphs(name, text))
    }

    fn words(name: &str, text: &str) -> Vec<(usize, String)> {
        let words = found(name, text).into_iter();
        words.map(|(line, words)| (line, words.split('"').nth(1).unwrap().to_owned())).collect()
    }

    #[test]
    fn documents_are_read_by_paragraphs() {
        let text = "A block lies behind\nanother.\n\n- Each has a color of\n  its own.\n\n    code behind\n\n```\nbehind\n```\n| `behind` | that one. |\n";
        let expected = [(1, "behind"), (4, "of its own."), (12, "that one.")];
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
        let text = "\"\"\"What whoever opens it sees.\"\"\"\nbehind = 1\ndef f():\n    \"\"\"Opens\n    anew.\n    \"\"\"\n    is_behind\n";
        let found = words("crates/ends/wheel/python/blockyard/a.py", text);
        assert_eq!(found, [(1, "whoever".to_owned()), (5, "anew".to_owned())]);
    }

    #[test]
    fn results_are_named() {
        let text = "What a run came to, as far as its trace tells. A file does not tell\nthe limit, and waits for ever.\n";
        let expected = [
            (1, "What a run came to"),
            (1, "as far as its trace tells"),
            (1, "does not tell"),
            (2, "for ever"),
        ];
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
            "The block comes to the front, all the same blocks follow.",
            "What the block tells the reader.",
        ] {
            assert_eq!(found("a.md", plain), [], "{plain}");
        }
    }
}
