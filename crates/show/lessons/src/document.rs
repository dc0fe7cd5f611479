//! A file as front matter and sections, whatever they mean.

use blockyard_record::index_u32;

use crate::error::{Errors, KnownNames, LessonError, LessonErrorKind, Position};
use crate::markdown::{Part, Piece, Prose, foreign_form};
use crate::recorded::RECORDED;
use crate::slider::SLIDER;

/// A file that begins with front matter.
#[derive(Debug)]
pub(crate) struct Document<'t> {
    pub(crate) front: Fields,
    pub(crate) sections: Vec<Section<'t>>,
}

/// The part of a file below a line `## Title`.
#[derive(Debug)]
pub(crate) struct Section<'t> {
    pub(crate) at: Position,
    pub(crate) title: Vec<Piece>,
    pub(crate) items: Vec<Item<'t>>,
}

#[derive(Debug)]
pub(crate) enum Item<'t> {
    Part(Part),
    Fence(Fence<'t>),
}

/// A fenced block that has a meaning in lessons.
#[derive(Clone, Debug)]
pub(crate) struct Fence<'t> {
    /// The opening line.
    pub(crate) at: Position,
    /// The first word after the fence.
    pub(crate) language: &'t str,
    /// The other words.
    pub(crate) options: &'t str,
    pub(crate) lines: Vec<&'t str>,
}

/// Lines `key: value`; lines that begin with a space go on with the value before.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) at: Position,
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) at: Position,
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) prose: Prose,
}

impl Fields {
    /// Reads `lines`, of which the first has the number `first_line`. A line with an error is left out.
    pub(crate) fn parse(at: Position, first_line: u32, lines: &[&str], errors: &mut Errors) -> Self {
        let mut fields: Vec<Field> = Vec::new();
        for (number, line) in (first_line..).zip(lines) {
            let here = Position { line: number, column: 1 };
            if line.trim().is_empty() {
                continue;
            }
            if line.starts_with([' ', '\t'])
                && let Some(field) = fields.last_mut()
            {
                let indent = u32::try_from(line.len() - line.trim_start().len()).unwrap_or(0);
                field.prose.push(Position { line: number, column: 1 + indent }, line.trim());
                field.value.push(' ');
                field.value.push_str(line.trim());
                continue;
            }
            let not_a_key = || here.at(LessonErrorKind::NotAKey { expected: "key: value" });
            let parts = line.split_once(':').map(|(key, value)| (key.trim(), value));
            let parts = parts.filter(|(key, _)| !key.is_empty() && !key.contains(char::is_whitespace));
            let Some((key, value)) = parts else {
                errors.push(not_a_key());
                continue;
            };
            let before = line.chars().count() - value.trim_start().chars().count();
            let value_at = Position { line: number, column: index_u32(before + 1) };
            fields.push(Field {
                at: here,
                key: key.to_owned(),
                value: value.trim().to_owned(),
                prose: Prose::line(value_at, value.trim()),
            });
        }
        Self { at, fields }
    }

    /// Reports keys that are not among `known`, which the message names, and repetitions of keys that are not
    /// in `repeated`.
    pub(crate) fn check(&self, known: &'static str, repeated: &[&str], errors: &mut Errors) {
        for (index, field) in self.fields.iter().enumerate() {
            let key = field.key.clone();
            if !known.split(", ").any(|known| known == key) {
                let known = KnownNames::of(&key, known.split(", "));
                errors.push(field.at.at(LessonErrorKind::UnknownKey { key, known }));
                continue;
            }
            let is_second = self.fields.iter().take(index).any(|other| other.key == key);
            if is_second && !repeated.contains(&key.as_str()) {
                errors.push(field.at.at(LessonErrorKind::DuplicateKey { key }));
            }
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Field> {
        self.all(key).next()
    }

    pub(crate) fn all(&self, key: &str) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(move |field| field.key == key)
    }

    pub(crate) fn require(&self, place: &'static str, key: &'static str) -> Result<&Field, LessonError> {
        let field = self.get(key).filter(|field| !field.value.is_empty());
        field.ok_or_else(|| self.at.at(LessonErrorKind::MissingKey { place, key }))
    }
}

/// The first word of a fence `python start` or `python solution`; without the second word, a program is shown
/// as it is.
pub(crate) const PYTHON: &str = "python";

/// The second word of a fence `python run`, whose lines are what the card plays.
pub(crate) const RUN: &str = "run";
/// The words after `python` of a fence whose lines are to run out of memory.
const RUN_FAILS: &str = "run fails";

/// The word of a fence about the non-PyTorch memory of the process.
pub(crate) const OUTSIDE: &str = "outside";

/// The word of a fence whose lines name the bars beside the figure.
pub(crate) const BESIDE: &str = "beside";

/// The word of a fence with the lines that solve an exercise.
pub(crate) const SOLUTION: &str = "solution";

/// The word of a fence with what the speaker says, which no reader sees.
pub(crate) const NOTES: &str = "notes";

/// The words after a fence that have a meaning.
const LANGUAGES: [&str; 11] =
    ["workload", "rerun", RECORDED, OUTSIDE, BESIDE, "predict", SLIDER, "exercise", "start", SOLUTION, NOTES];

/// The words of blocks that are shown as they are.
const SHOWN: [&str; 16] = [
    "", "text", PYTHON, "console", "shell", "sh", "bash", "json", "yaml", "toml", "c", "cpp", "cuda", "rust",
    "diff", "output",
];

/// Other words for blocks, which an author may try.
const OTHER_WORDS: [(&str, &str); 12] = [
    ("question", "predict"),
    ("questions", "predict"),
    ("quiz", "predict"),
    ("program", "workload"),
    ("run", "workload"),
    ("task", "exercise"),
    ("begin", "start"),
    ("answer", SOLUTION),
    ("python run", "python run"),
    ("python run fails", "python run fails"),
    ("python start", "python start"),
    ("python solution", "python solution"),
];

/// The known word that an author who wrote `found` after a fence most likely meant.
fn nearest(found: &str) -> &'static str {
    let names = LANGUAGES.into_iter().chain(SHOWN).filter(|name| !name.is_empty()).map(|name| (name, name));
    let all = names.chain(OTHER_WORDS);
    all.min_by_key(|(word, _)| strsim::levenshtein(word, found)).map_or("text", |(_, meant)| meant)
}

impl<'t> Section<'t> {
    /// The lines of Python that the card plays.
    pub(crate) fn program(&self) -> Option<&Fence<'t>> {
        self.items.iter().find_map(|item| match item {
            Item::Fence(fence) if fence.is_program() => Some(fence),
            _ => None,
        })
    }
}

impl Fence<'_> {
    /// Whether the block has lines of Python that the card plays.
    pub(crate) fn is_program(&self) -> bool {
        self.language == PYTHON && [RUN, RUN_FAILS].contains(&self.options)
    }

    /// Whether these lines are to run out of memory.
    pub(crate) fn fails(&self) -> bool {
        self.options == RUN_FAILS
    }

    /// Whether the block has the lines that solve an exercise.
    pub(crate) fn is_solution(&self) -> bool {
        self.language == SOLUTION || (self.language == PYTHON && self.options == SOLUTION)
    }

    /// The lines as one paragraph.
    pub(crate) fn prose(&self) -> Prose {
        let mut prose = Prose::default();
        for (line, text) in (self.at.line.saturating_add(1)..).zip(&self.lines) {
            prose.push(Position { line, column: 1 }, text.trim());
        }
        prose
    }

    /// Whether the reader of a chapter does not see the lines: a `python` block shows what they stand for.
    pub(crate) fn is_hidden(&self) -> bool {
        self.options.split_whitespace().any(|word| word == HIDDEN)
    }

    /// Whether the figure of the card stands where the lines have the most allocated bytes, and not at their
    /// end.
    pub(crate) fn is_at_peak(&self) -> bool {
        self.options.split_whitespace().any(|word| word == AT_PEAK)
    }
}

/// The word after a fence whose lines the reader of a chapter does not see.
pub(crate) const HIDDEN: &str = "hidden";
/// The word after a fence whose figure shows the peak of the lines.
pub(crate) const AT_PEAK: &str = "peak";

impl<'t> Document<'t> {
    /// Reads the parts of a text. A part with an error is left out; nothing is read without front matter.
    pub(crate) fn parse(text: &'t str, errors: &mut Errors) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let top = Position { line: 1, column: 1 };
        let end = match lines.split_first() {
            Some((&"---", rest)) => rest.iter().position(|line| line.trim_end() == "---"),
            _ => None,
        };
        let end = errors.keep(end.ok_or_else(|| top.at(LessonErrorKind::NoFrontMatter)))?;
        let front = Fields::parse(top, 2, lines.get(1..=end).unwrap_or_default(), errors);
        let mut reader = Reader { lines: &lines, next: end + 2, sections: Vec::new() };
        while reader.next < lines.len() {
            reader.read(errors);
        }
        Some(Self { front, sections: reader.sections })
    }
}

/// The text of a lesson without the blocks that solve its exercises and without the speaker's notes, for
/// readers who are to solve them.
pub fn without_solutions(text: &str) -> String {
    let (mut kept, mut is_fence, mut is_solution) = (String::new(), false, false);
    for line in text.split_inclusive('\n') {
        let is_end = is_fence && line.trim_end() == "```";
        if !is_fence && let Some(info) = line.strip_prefix("```") {
            let words: Vec<&str> = info.split_whitespace().collect();
            is_fence = true;
            is_solution = matches!(words.as_slice(), [SOLUTION | NOTES, ..] | [PYTHON, SOLUTION]);
        }
        if !is_solution {
            kept.push_str(line);
        }
        if is_end {
            (is_fence, is_solution) = (false, false);
        }
    }
    kept
}

struct Reader<'a, 't> {
    lines: &'a [&'t str],
    /// The line to read next, from 0.
    next: usize,
    sections: Vec<Section<'t>>,
}

impl<'t> Reader<'_, 't> {
    fn line(&self) -> Option<&'t str> {
        self.lines.get(self.next).copied()
    }

    fn at(&self) -> Position {
        Position { line: index_u32(self.next + 1), column: 1 }
    }

    /// Reads the part that begins at the next line.
    fn read(&mut self, errors: &mut Errors) {
        let Some(line) = self.line() else { return };
        if line.trim().is_empty() || (line.starts_with("<!--") && line.trim_end().ends_with("-->")) {
            self.next += 1;
            return;
        }
        if let Some(title) = line.strip_prefix("## ") {
            let at = self.at();
            let title = Prose::line(Position { line: at.line, column: 4 }, title.trim()).parse(errors);
            self.sections.push(Section { at, title, items: Vec::new() });
            self.next += 1;
            return;
        }
        if self.sections.is_empty() {
            errors.push(self.at().at(LessonErrorKind::BeforeFirstCard));
            while self.line().is_some_and(|line| !line.starts_with("## ")) {
                self.next += 1;
            }
            return;
        }
        if let Some(form) = foreign_form(line) {
            errors.push(self.at().at(LessonErrorKind::Form { form }));
            self.next += 1;
            return;
        }
        let item = if line.starts_with("```") {
            let fence = self.fence();
            errors.keep(fence)
        } else if line.starts_with("- ") {
            Some(self.list(errors))
        } else {
            let prose = self.prose("");
            Some(Item::Part(Part::Paragraph(prose.parse(errors))))
        };
        if let (Some(section), Some(item)) = (self.sections.last_mut(), item) {
            section.items.push(item);
        }
    }

    /// Reads a block. If a block is never closed, neither it nor the text after it is read.
    fn fence(&mut self) -> Result<Item<'t>, LessonError> {
        let at = self.at();
        let info = self.line().unwrap_or_default().trim_start_matches('`').trim();
        self.next += 1;
        let rest = self.lines.get(self.next..).unwrap_or_default();
        let length = rest.iter().position(|line| line.trim_end() == "```");
        let Some(length) = length else {
            self.next = self.lines.len();
            return Err(at.at(LessonErrorKind::Unclosed { mark: "```" }));
        };
        // The opening fence of another block comes before the closing fence, which belongs to the other
        // block.
        if rest.iter().take(length).any(|line| line.starts_with("```")) {
            self.next += length + 1;
            return Err(at.at(LessonErrorKind::Unclosed { mark: "```" }));
        }
        let lines = rest.get(..length).unwrap_or_default().to_vec();
        self.next += length + 1;
        let (language, options) = info.split_once(char::is_whitespace).unwrap_or((info, ""));
        let options = options.trim();
        if LANGUAGES.contains(&language)
            || (language == PYTHON && ["start", SOLUTION, RUN, RUN_FAILS].contains(&options))
        {
            return Ok(Item::Fence(Fence { at, language, options, lines }));
        }
        // A block with a mistyped word would be shown to readers as text, and its question or workload would
        // be lost.
        if !SHOWN.contains(&language) || (language == PYTHON && !options.is_empty()) {
            let found = if language == PYTHON { info } else { language };
            let near = nearest(&found.to_lowercase());
            return Err(at.at(LessonErrorKind::UnknownBlock { found: found.to_owned(), near }));
        }
        Ok(Item::Part(Part::Code { language: language.to_owned(), text: lines.join("\n") }))
    }

    fn list(&mut self, errors: &mut Errors) -> Item<'t> {
        let mut items = Vec::new();
        while self.line().is_some_and(|line| line.starts_with("- ")) {
            items.push(self.prose("- ").parse(errors));
        }
        Item::Part(Part::List(items))
    }

    /// The lines of prose up to the next other line, without the mark before the first line.
    fn prose(&mut self, mark: &str) -> Prose {
        let mut prose = Prose::default();
        while let Some(line) = self.line() {
            let is_first = prose.is_empty();
            let ends = line.trim().is_empty()
                || line.starts_with("## ")
                || line.starts_with("```")
                || line.starts_with("- ");
            if ends && (!is_first || mark.is_empty()) {
                break;
            }
            let text = if is_first { line.strip_prefix(mark).unwrap_or(line) } else { line };
            let cut = line.chars().count() - text.trim_start().chars().count();
            let column = index_u32(cut + 1);
            prose.push(Position { line: self.at().line, column }, text.trim());
            self.next += 1;
        }
        prose
    }
}
