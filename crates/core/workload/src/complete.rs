//! What may be typed at a place of a text: statements, names, sizes, streams.

use blockyard_rules::SETTING_KEYS;

use crate::size::{DTYPES, decimal_unit, dtype_size, unit_shift};
use crate::token::{Lexer, TokenKind};
use crate::words::STATEMENTS;

/// What may be written at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Where the word that a completion replaces begins, in bytes of the text; it ends at the place.
    pub start: usize,
    /// The completions, the likeliest first.
    pub items: Vec<Completion>,
    /// Whether the typed word equals a completion: the word is finished, though a longer completion may begin
    /// with it.
    pub is_whole_word: bool,
}

/// One of the things that may be written at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The text that is inserted.
    pub text: String,
    /// What the text means, in a few words.
    pub detail: &'static str,
}

/// How many bytes of text before the place are searched for names: a search of more would delay each key.
const SEARCHED_BYTES: usize = 256 << 10;
/// How many completions are returned at most.
const MAX_ITEMS: usize = 12;

const MAKERS: [(&str, &str); 4] = [
    ("alloc", "a size in bytes, or a shape"),
    ("torch.empty(", "a tensor of this shape"),
    ("torch.zeros(", "a tensor of this shape"),
    ("torch.randn(", "a tensor of this shape"),
];

const SIZES: [&str; 7] = ["3 MiB", "20 MiB", "512 KiB", "1 MiB", "10 MiB", "100 MiB", "1 GiB"];
const UNITS: [(&str, &str); 8] = [
    ("MiB", "1,048,576 bytes"),
    ("GiB", "1,024 MiB"),
    ("KiB", "1,024 bytes"),
    ("B", "bytes"),
    ("MB", "1,000,000 bytes"),
    ("GB", "1,000 MB"),
    ("KB", "1,000 bytes"),
    ("TiB", "1,024 GiB"),
];
/// What may be typed at `place`, in bytes from the start of the text. A comment and a text in quotes have no
/// completions, nor has a place inside of a character.
///
/// The typed part of a word restricts the completions, upper and lower case alike; a finished word has none.
///
/// ```
/// let found = blockyard_workload::complete("stream side\na = alloc 3 MiB on s", 32);
/// assert_eq!((found.start, found.items[0].text.as_str()), (31, "side"));
/// ```
#[must_use]
pub fn complete(text: &str, place: usize) -> Completions {
    let Some(before) = text.get(..place) else { return Completions::default() };
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.get(line_start..).unwrap_or_default();
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
    let typed = line.rfind(|letter| !is_part(letter)).map_or(line, |at| {
        let end = at + line.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        line.get(end..).unwrap_or_default()
    });
    let start = place - typed.len();
    let Some(statement) = tokens(line.get(..line.len() - typed.len()).unwrap_or_default()) else {
        return Completions::default();
    };
    let known = || KnownNames::of(before.get(..line_start).unwrap_or_default());
    let mut items = candidates(&statement, typed, known);
    let wanted = typed.to_lowercase();
    let is_whole_word = items.iter().any(|item| item.text == typed);
    items.retain(|item| item.text.to_lowercase().starts_with(&wanted) && item.text != typed);
    items.truncate(MAX_ITEMS);
    Completions { start, items, is_whole_word }
}

type Token<'t> = (TokenKind, &'t str);

/// The tokens of the line's last statement; `None` in a comment or in quotes.
fn tokens(line: &str) -> Option<Vec<Token<'_>>> {
    let mut lexer = Lexer::new(line);
    let mut statement = Vec::new();
    let mut end = 0;
    loop {
        let token = lexer.next();
        match token.kind {
            TokenKind::End | TokenKind::LineEnd => break,
            TokenKind::OpenQuote => return None,
            TokenKind::Symbol(';' | '{' | '}') => statement.clear(),
            kind => statement.push((kind, token.span.slice(line))),
        }
        end = token.span.end;
    }
    let is_comment = line.get(end..).is_some_and(|rest| rest.contains('#'));
    (!is_comment).then_some(statement)
}

fn candidates<'t>(
    statement: &[Token<'t>],
    typed: &str,
    known: impl FnOnce() -> KnownNames<'t>,
) -> Vec<Completion> {
    let Some((last, _)) = statement.split_last() else { return statements() };
    let first = statement.first().map_or("", |(_, word)| *word);
    match (first, last.1, last.0) {
        ("free" | "del" | "record_stream", "free" | "del" | "record_stream" | ",", _)
        | ("for", "in" | ",", _) => known().tensors(),
        ("record_stream", _, TokenKind::Word | TokenKind::Symbol(']'))
        | ("advance", "advance" | ",", _)
        | (_, "on", TokenKind::Word) => known().streams(),
        ("enter" | "leave" | "destroy", "enter" | "leave" | "destroy", _) => known().pools(),
        ("pool", word, TokenKind::Word) if word != "pool" => {
            listed(&[("no_split", "large blocks stay whole"), ("use_on_oom", "the last resort of others")])
        }
        ("set" | "conf", "set" | "conf" | ",", _) => settings(),
        ("set" | "conf", ":", _) => listed(&[("True", ""), ("False", "")]),
        ("capacity", "capacity", _) | (_, "alloc", _) => sizes(typed, known),
        (_, "=", _) => listed(&MAKERS),
        (_, word, TokenKind::Word)
            if unit_shift(word).is_some() || decimal_unit(word).is_some() || dtype_size(word).is_some() =>
        {
            listed(&[("on", "another stream")])
        }
        (_, _, TokenKind::Number) if statement.iter().any(|(kind, _)| *kind == TokenKind::Times) => dtypes(),
        (_, _, TokenKind::Number)
            if statement.iter().any(|(_, word)| *word == "alloc" || *word == "capacity") =>
        {
            listed(&UNITS)
        }
        _ => Vec::new(),
    }
}

fn statements() -> Vec<Completion> {
    let mut all = listed(&STATEMENTS);
    if let Some(step) = all.iter_mut().find(|item| item.text == "step") {
        step.text.push_str(" \"\"");
    }
    all.extend(listed(&[("torch.cuda.empty_cache()", "releases cached segments")]));
    all
}

fn dtypes() -> Vec<Completion> {
    let detail = |size| match size {
        1 => "1 byte each",
        2 => "2 bytes each",
        4 => "4 bytes each",
        _ => "8 bytes each",
    };
    DTYPES.map(|(dtype, size)| Completion { text: dtype.to_owned(), detail: detail(size) }).into()
}

fn listed(items: &[(&str, &'static str)]) -> Vec<Completion> {
    items.iter().map(|(text, detail)| Completion { text: (*text).to_owned(), detail }).collect()
}

/// The keys of `PYTORCH_CUDA_ALLOC_CONF` that change device memory here; a choice with the value that is not
/// its default.
fn settings() -> Vec<Completion> {
    let shown = SETTING_KEYS.iter().filter_map(|setting| {
        let other = setting.values.iter().find(|value| setting.is_choice && **value != setting.default);
        Some(Completion {
            text: format!("{}:{}", setting.key, other.copied().unwrap_or_default()),
            detail: setting.brief?,
        })
    });
    shown.collect()
}

/// Sizes that the text has already, then usual ones; for a number its units.
fn sizes<'t>(typed: &str, known: impl FnOnce() -> KnownNames<'t>) -> Vec<Completion> {
    if typed.starts_with(|digit: char| digit.is_ascii_digit()) {
        let units = UNITS.iter().take(6);
        return units.map(|(unit, detail)| Completion { text: format!("{typed} {unit}"), detail }).collect();
    }
    let mut sizes: Vec<String> = Vec::new();
    for size in known().sizes.into_iter().rev().chain(SIZES.map(str::to_owned)) {
        if !sizes.contains(&size) {
            sizes.push(size);
        }
    }
    sizes.into_iter().map(|text| Completion { text, detail: "" }).collect()
}

/// What the lines above the place name.
#[derive(Default)]
struct KnownNames<'t> {
    /// The tensors that the lines allocate and do not free.
    tensors: Vec<String>,
    streams: Vec<&'t str>,
    pools: Vec<&'t str>,
    sizes: Vec<String>,
}

impl<'t> KnownNames<'t> {
    fn of(text: &'t str) -> Self {
        let skipped = text.len().saturating_sub(SEARCHED_BYTES);
        let start =
            text.get(skipped..).map_or(0, |rest| rest.find('\n').map_or(skipped, |end| skipped + end + 1));
        let mut known = Self::default();
        for line in text.get(if skipped == 0 { 0 } else { start }..).unwrap_or_default().lines() {
            known.read_line(line);
        }
        known
    }

    fn read_line(&mut self, line: &'t str) {
        let mut lexer = Lexer::new(line);
        let mut statement: Vec<Token<'t>> = Vec::new();
        loop {
            let token = lexer.next();
            match token.kind {
                TokenKind::End => break,
                TokenKind::Symbol(';' | '{' | '}') => self.read(&std::mem::take(&mut statement)),
                kind => statement.push((kind, token.span.slice(line))),
            }
        }
        self.read(&statement);
    }

    fn read(&mut self, statement: &[Token<'t>]) {
        let words = |from: usize| {
            let rest = statement.get(from..).unwrap_or_default();
            rest.iter().filter(|(kind, _)| *kind == TokenKind::Word).map(|(_, word)| *word)
        };
        match statement.first() {
            Some((_, "stream")) => self.streams.extend(words(1)),
            Some((_, "pool")) => self.pools.extend(words(1).take(1)),
            Some((_, "free" | "del")) => {
                let freed = statement.get(1..).unwrap_or_default();
                for name in freed.split(|(_, word)| *word == ",").map(name_of) {
                    let base = name.strip_suffix("[*]").map(str::to_owned);
                    self.tensors.retain(|tensor| {
                        *tensor != name
                            && base.as_ref().is_none_or(|base| !tensor.starts_with(&format!("{base}[")))
                    });
                }
            }
            _ => self.read_allocation(statement),
        }
    }

    fn read_allocation(&mut self, statement: &[Token<'t>]) {
        let Some(equals) = statement.iter().position(|(_, word)| *word == "=") else { return };
        let name = name_of(statement.get(..equals).unwrap_or_default());
        if !name.is_empty() && !self.tensors.contains(&name) {
            self.tensors.push(name);
        }
        if let Some([(_, "alloc"), (TokenKind::Number, number), (TokenKind::Word, unit)]) =
            statement.get(equals + 1..equals + 4)
        {
            self.sizes.push(format!("{number} {unit}"));
        }
    }

    fn tensors(self) -> Vec<Completion> {
        // The last one is the likeliest to be freed first.
        let tensors = self.tensors.into_iter().rev();
        tensors.map(|text| Completion { text, detail: "tensor" }).collect()
    }

    fn streams(self) -> Vec<Completion> {
        let named = self.streams.into_iter().map(|name| (name, "stream"));
        let all = named.chain([("default", "the default stream")]);
        all.map(|(text, detail)| Completion { text: text.to_owned(), detail }).collect()
    }

    fn pools(self) -> Vec<Completion> {
        let pools = self.pools.into_iter();
        pools.map(|text| Completion { text: text.to_owned(), detail: "memory pool" }).collect()
    }
}

/// `x`, `x[3]`; `x[*]` where a variable is in the brackets.
fn name_of(tokens: &[Token<'_>]) -> String {
    let mut name = String::new();
    for (kind, word) in tokens {
        let is_variable = !name.is_empty() && *kind == TokenKind::Word;
        name.push_str(if is_variable { "*" } else { word });
    }
    // Elements of elements are freed by the first index too.
    match name.split_once("[*]") {
        Some((base, _)) => format!("{base}[*]"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn settings_are_those_that_change_device_memory() {
        let ours: BTreeSet<String> = settings().into_iter().map(|setting| setting.text).collect();
        let known = SETTING_KEYS.iter().filter(|row| row.is_modeled && !row.key.starts_with("pinned_"));
        let known: BTreeSet<&str> = known.map(|row| row.key).collect();
        assert_eq!(
            ours.iter().filter_map(|text| Some(text.split_once(':')?.0)).collect::<BTreeSet<_>>(),
            known
        );
        assert!(ours.contains("expandable_segments:True") && ours.contains("backend:cudaMallocAsync"));
    }

    /// Completions at the `|`.
    fn at(text: &str) -> Vec<String> {
        let place = text.find('|').unwrap();
        let text = text.replacen('|', "", 1);
        complete(&text, place).items.into_iter().map(|item| item.text).collect()
    }

    #[test]
    fn statements_begin_lines_and_follow_braces() {
        assert_eq!(at("em|"), ["empty_cache"]);
        assert_eq!(at("repeat 3 { rec|"), ["record_stream"]);
        assert_eq!(at("torch.cuda.em|"), ["torch.cuda.empty_cache()"]);
        assert_eq!(at("a = |"), ["alloc", "torch.empty(", "torch.zeros(", "torch.randn("]);
    }

    #[test]
    fn names_are_those_that_are_still_allocated() {
        let text = "a = alloc 1\nb = alloc 2\nrepeat 2 as i { x[i] = alloc 3 MiB }\nfree a\n";
        assert_eq!(at(&format!("{text}free |")), ["x[*]", "b"]);
        assert_eq!(at(&format!("{text}free x[*]; c = alloc 4\ndel b, |\nd = alloc 1")), ["c", "b"]);
    }

    #[test]
    fn sizes_have_units_and_those_of_the_text_come_first() {
        assert_eq!(at("a = alloc 7 KiB\nb = alloc |")[..2], ["7 KiB", "3 MiB"]);
        assert_eq!(at("a = alloc 5|")[..2], ["5 MiB", "5 GiB"]);
        assert_eq!(at("a = alloc 5 g|"), ["GiB", "GB"]);
        assert_eq!(at("a = alloc 5 x 5 float1|"), ["float16"]);
        assert_eq!(at("a = alloc 5 MiB |"), ["on"]);
    }

    #[test]
    fn streams_and_pools_are_those_declared_above() {
        let text = "stream side, copy; pool p\n";
        assert_eq!(at(&format!("{text}a = alloc 1 MiB on |")), ["side", "copy", "default"]);
        assert_eq!(at(&format!("{text}record_stream a s|")), ["side"]);
        assert_eq!(at(&format!("{text}enter |")), ["p"]);
    }

    #[test]
    fn nothing_is_completed_in_comments_quotes_and_finished_words() {
        assert!(at("# fr|").is_empty());
        assert!(at("step \"fr|").is_empty());
        assert_eq!(at("free|"), Vec::<String>::new());
        assert!(complete("µ", 1).items.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn any_place_of_any_text_has_an_answer(text in "[a-z #\"\\[\\]=;,0-9µ.{}\n]{0,60}", place in 0_usize..70) {
            let found = complete(&text, place);
            proptest::prop_assert!(found.start <= place);
        }
    }
}
