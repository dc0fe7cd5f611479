//! Types are nouns: a participle, an adjective or an adverb as the name of a type leaves open what the type
//! is. `cargo xtask style` finds such names by their last word.
//!
//! This check is ours, because no linter knows the form of an English word: the endings and the irregular
//! forms are listed here.

use std::fs;

use anyhow::{Result, bail};
use regex::Regex;

use crate::workspace::Workspace;

/// Participles that do not end in `ed` or `ing`. Those that are usual as nouns (`Set`, `Split`, `Run`, `Cut`)
/// are not listed.
const IRREGULAR: &str = "\
    Begun Bought Broken Brought Built Caught Chosen Done Drawn Driven Felt Forgotten Found Frozen \
    Given Gone Got Grew Grown Held Hidden Kept Known Laid Left Lent Lost Made Meant Met Paid Put \
    Rewound Said Says Seen Sent Shown Sold Spent Spoken Taken Tell Thrown Told Understood Unseen What \
    Won Worn Written";

/// Words that are not nouns, or not nouns of this project, where they are the whole name.
const ADJECTIVES: &str = "\
    After Again Apart At Before Below Beside Between By Current Early Flat Foreign Free Inside \
    Large Largest Last Late Live Narrow New Next Offscreen Once Other Others Ours Outside Own Physical \
    Plain Read Ready Same Small Smallest Strict Theirs Virtual Whole";

/// Last words that look like participles and are nouns.
const NOUNS: [(&str, &str); 13] = [
    ("Beginning", "the memory before the first entry of a trace"),
    ("Crossing", "the place at which a number is exceeded"),
    ("Embed", "a page within another page, HTML's `embed`"),
    ("Finding", "a result of a search"),
    ("Heading", "a line above others"),
    ("Meaning", "what a key or a burst stands for"),
    ("Numbering", "numbers that are given out in order"),
    ("Padding", "an argument of convolutions, as PyTorch names it"),
    ("Pinning", "a way of pinning memory"),
    ("Recording", "one whole run, see docs/words.md"),
    ("Seed", "where a random generator starts; a trait of serde"),
    ("Setting", "an entry of `PYTORCH_CUDA_ALLOC_CONF`"),
    ("Stitching", "an allocator that is called so"),
];

/// Whole names that stay, with the reason.
const EXCEPTIONS: [(&str, &str); 2] =
    [("OnCompared", "a callback is named by its event"), ("OnDone", "a callback is named by its event")];

/// Checks the names of all types of the repository.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let types = Types::compile()?;
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in workspace.listed_files()?.iter().filter(|file| file.rsplit('.').next() == Some("rs")) {
        let Ok(text) = fs::read_to_string(workspace.root().join(file)) else { continue };
        for (line, name) in types.of(&text) {
            count += 1;
            if !is_noun(name) {
                wrong.push(format!("{file}:{line}: {name}"));
            }
        }
    }
    if !wrong.is_empty() {
        bail!(
            "types whose names are not nouns (a noun that looks like a participle is a row of NOUNS in \
             xtask/src/names.rs):\n  {}",
            wrong.join("\n  ")
        );
    }
    println!("    the names of {count} types are nouns");
    Ok(())
}

struct Types(Regex);

impl Types {
    fn compile() -> Result<Self> {
        // A type within an implementation has the name that its trait gives.
        let declaration = r"^(?:(?:\s*)(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|union|trait)|(?:pub(?:\([^)]*\))? )?type) ([A-Z]\w*)";
        Ok(Self(Regex::new(declaration)?))
    }

    /// The line and the name of each type that a text declares.
    fn of<'a>(&self, text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
        let lines = text.lines().enumerate();
        lines.filter_map(|(index, line)| Some((index + 1, self.0.captures(line)?.get(1)?.as_str())))
    }
}

fn is_noun(name: &str) -> bool {
    let begin = name.rfind(|letter: char| letter.is_ascii_uppercase()).unwrap_or(0);
    let last = &name[begin..];
    let is_listed = NOUNS.iter().any(|(noun, _)| *noun == last);
    let looks_like_participle = last.ends_with("ed") || last.ends_with("ing");
    let is_exception = EXCEPTIONS.iter().any(|(exception, _)| *exception == name);
    is_exception
        || is_listed
        || !(looks_like_participle
            || IRREGULAR.split(' ').any(|word| word == last)
            || ADJECTIVES.split(' ').any(|word| word == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_and_types_of_traits_are_not() {
        let text = "pub struct Held {\n    struct Inner;\npub(crate) type Kept = u8;\n    type Taken = u8;\nlet struct_ = 1;\npub unsafe trait Sunk {}\n";
        let found: Vec<_> = Types::compile().unwrap().of(text).collect();
        assert_eq!(found, [(1, "Held"), (2, "Inner"), (3, "Kept"), (6, "Sunk")]);
    }

    #[test]
    fn participles_and_adjectives_are_no_nouns() {
        for name in
            ["Held", "LinesKept", "Asked", "CardDone", "Presenting", "FitReplayed", "Between", "Unmapped"]
        {
            assert!(!is_noun(name), "{name}");
        }
        for name in
            ["HeldBlock", "Recording", "FitSetting", "PoolHeading", "RunOutside", "OnDone", "Block", "B"]
        {
            assert!(is_noun(name), "{name}");
        }
    }
}
