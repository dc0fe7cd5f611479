//! Writes the view into the hash of an address, and reads it back.
//!
//! People may read and write addresses such as `#preset=terms&step=5` and `#lesson=streams&card=4`. A
//! workload of the reader's own is compressed: `#text=1.…`, where 1 is the version of the format. The order
//! of the parts does not matter. Parts that are not understood are reported, and the others are used.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use thiserror::Error;

use crate::navigation::{CardPlace, Place, TeachersPage};

/// The part of the page, and the document, that an address opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkTarget {
    /// A part of the page other than a lesson and a program.
    Place(Place),
    /// A card of a lesson, counted from 1.
    Lesson { id: String, card: usize },
    /// A lesson whose text is in the address, at a card, counted from 1. A class is not asked to edit it.
    LessonText { text: String, card: usize, is_for_class: bool },
    /// A workload that comes with the page, by its id.
    Preset(String),
    /// A workload of the reader's own.
    Text { title: String, text: String },
    /// A Python program that comes with the page, by its id; empty for the program in the editor.
    ProgramExample(String),
    /// A Python program of the reader's own.
    ProgramText(String),
    /// A recording that comes with the page, by its name.
    Sample(String),
    /// A file beside the page (see [`crate::browser::address_beside`]), by its name.
    Beside(String),
    /// A recording of the reader's own. It is a file on the reader's machine, so the address cannot contain
    /// it.
    OwnFile,
    /// A card of the reader's own lesson, counted from 1.
    OwnLesson(usize),
}

/// The parts of an address. Parts that are `None` are not in the address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) target: LinkTarget,
    /// `PYTORCH_CUDA_ALLOC_CONF`, if it differs from the target's settings.
    pub(crate) conf: Option<String>,
    /// The capacity of the device, if it differs from the target's capacity.
    pub(crate) capacity: Option<String>,
    /// The id of the GPU that a program runs on, if it is not the H200.
    pub(crate) gpu: Option<String>,
    /// The release of PyTorch that runs a program, if it is not that of the page's operators.
    pub(crate) release: Option<String>,
    /// The arguments of a program, as typed after its name in a shell.
    pub(crate) arguments: Option<String>,
    /// How many steps are done at the cursor.
    pub(crate) step: Option<usize>,
    /// How many events are applied at the cursor, while the player moves by events.
    pub(crate) event: Option<usize>,
    /// The index of the device that is shown, of a file with several.
    pub(crate) device: Option<usize>,
    /// The number of the chosen block.
    pub(crate) block: Option<u64>,
    pub(crate) theme: Option<String>,
    /// A question of the lab, as [`blockyard_lab::QuestionKind`] names it.
    pub(crate) lab: Option<String>,
    /// The settings of the question.
    pub(crate) question_conf: Option<String>,
    /// The capacity of the device in the question.
    pub(crate) question_capacity: Option<String>,
    /// The limit of reserved bytes in the question.
    pub(crate) question_limit: Option<String>,
    /// The plan of a class, as [`blockyard_lessons::Plan`] writes it.
    pub(crate) class_plan: Option<String>,
    /// The sliders of a chapter that were moved, with their values: `batch:8,layers:12`.
    pub(crate) sliders: Option<String>,
    /// The cards of a lesson, from 1, whose answers are shown: `2,5`.
    pub(crate) revealed: Option<String>,
    /// Lines that a reader wrote into the exercise of a lesson's card.
    pub(crate) solution: Option<String>,
}

/// A text of a link.
type LinkText = fn(&mut Link) -> &mut Option<String>;

/// The texts of a link, each with its key: those before the moment, and those after it.
const TEXTS: [(&str, LinkText); 8] = [
    ("conf", |link| &mut link.conf),
    ("capacity", |link| &mut link.capacity),
    ("gpu", |link| &mut link.gpu),
    ("release", |link| &mut link.release),
    ("args", |link| &mut link.arguments),
    ("class", |link| &mut link.class_plan),
    ("sliders", |link| &mut link.sliders),
    ("revealed", |link| &mut link.revealed),
];
const LATER_TEXTS: [(&str, LinkText); 5] = [
    ("theme", |link| &mut link.theme),
    ("lab", |link| &mut link.lab),
    ("with", |link| &mut link.question_conf),
    ("on", |link| &mut link.question_capacity),
    ("limit", |link| &mut link.question_limit),
];

/// Sentences about the parts of an address that were not understood.
pub(crate) type LinkProblems = Vec<String>;

/// The version of the format of compressed texts.
const VERSION: &str = "1.";

/// Texts that are longer than this after decompression are refused.
const MAX_TEXT_BYTES: u64 = 4 << 20;

/// Longer addresses are not written, because some programs cut them off.
pub(crate) const MAX_ADDRESS_CHARS: usize = 16_000;

impl Default for LinkTarget {
    fn default() -> Self {
        Self::Place(Place::Home)
    }
}

impl From<LinkTarget> for Link {
    fn from(target: LinkTarget) -> Self {
        Self { target, ..Self::default() }
    }
}

impl LinkTarget {
    /// The target of a link to a place that has an address.
    pub(crate) fn of(place: Place) -> Self {
        match place {
            Place::Lesson { id, card: CardPlace::At(card) } => Self::Lesson { id, card: card + 1 },
            place => Self::Place(place),
        }
    }

    /// Whether other readers can open the link: a file of this machine is in no link.
    pub(crate) fn is_for_others(&self) -> bool {
        let is_own_sheet = matches!(self, Self::Place(Place::Handout(ids)) if ids.is_empty());
        !is_own_sheet && !matches!(self, Self::OwnFile | Self::OwnLesson(_))
    }

    /// The hash, without `#`, of an address with this target and nothing else.
    pub(crate) fn hash(self) -> String {
        Link { target: self, ..Link::default() }.write()
    }
}

impl Link {
    /// Reads the hash of an address, with or without its `#`.
    pub(crate) fn read(hash: &str) -> (Self, LinkProblems) {
        let mut link = Self::default();
        let mut title = None;
        let mut text = None;
        let mut problems = LinkProblems::new();
        for pair in hash.trim_start_matches('#').split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = unescaped(value);
            match key {
                "title" => title = Some(value),
                "text" => text = keep_problem(unpacked(&value), &mut problems).or(text),
                key => link.read_part(key, value, &mut problems),
            }
        }
        if let Some(text) = text {
            link.target = LinkTarget::Text { title: title.unwrap_or_else(|| "From a link".to_owned()), text };
        }
        (link, problems)
    }

    /// Reads a part of an address other than the text of a workload and its title.
    fn read_part(&mut self, key: &str, value: String, problems: &mut LinkProblems) {
        if let Some((_, of)) = TEXTS.iter().chain(&LATER_TEXTS).find(|(known, _)| *known == key) {
            *of(self) = Some(value);
            return;
        }
        if let Some(target) = target_of(key, &value) {
            self.target = target;
            return;
        }
        let mut number = |what: &str| {
            let number = value.parse().ok();
            if number.is_none() {
                problems.push(format!("its {what}, \"{value}\", is not a number"));
            }
            number
        };
        match key {
            "step" => self.step = number("step"),
            "event" => self.event = number("event"),
            "device" => self.device = number("device"),
            "block" => self.block = number("block").and_then(|number| u64::try_from(number).ok()),
            "own-lesson" => self.target = LinkTarget::OwnLesson(number("card").unwrap_or(1)),
            "card" => self.set_card(number("card").unwrap_or(1)),
            "lesson" => {
                let card = if let LinkTarget::Lesson { card, .. } = self.target { card } else { 1 };
                self.target = LinkTarget::Lesson { id: value, card };
            }
            "solution" => {
                if let Some(lines) = keep_problem(unpacked(&value), problems) {
                    self.solution = Some(lines);
                }
            }
            "lesson-text" | "class-text" => {
                if let Some(text) = keep_problem(unpacked(&value), problems) {
                    let is_for_class = key == "class-text";
                    self.target = LinkTarget::LessonText { text, card: 1, is_for_class };
                }
            }
            "program" => {
                if let Some(text) = keep_problem(unpacked(&value), problems) {
                    self.target = LinkTarget::ProgramText(text);
                }
            }
            other => problems.push(format!("\"{other}\" is not known here; a newer Blockyard may know it")),
        }
    }

    /// Takes the number of a card, which a link may have before its lesson.
    fn set_card(&mut self, number: usize) {
        match &mut self.target {
            LinkTarget::Lesson { card, .. } | LinkTarget::LessonText { card, .. } => *card = number,
            target => *target = LinkTarget::Lesson { id: String::new(), card: number },
        }
    }

    /// The hash of the address without its `#`; empty for the first screen.
    pub(crate) fn write(&self) -> String {
        let mut parts: Vec<String> = match &self.target {
            LinkTarget::Place(place) => place_part(place).into_iter().collect(),
            LinkTarget::Lesson { id, card } => vec![pair("lesson", id), format!("card={card}")],
            LinkTarget::LessonText { text, card, is_for_class } => {
                let key = if *is_for_class { "class-text" } else { "lesson-text" };
                vec![packed_pair(key, text), format!("card={card}")]
            }
            LinkTarget::ProgramExample(id) => vec![optional_pair("python", id)],
            LinkTarget::ProgramText(text) => vec![packed_pair("program", text)],
            LinkTarget::Preset(id) => vec![pair("preset", id)],
            LinkTarget::Sample(name) => vec![pair("sample", name)],
            LinkTarget::Beside(name) => vec![pair("open", name)],
            LinkTarget::OwnFile => vec!["own-file".to_owned()],
            LinkTarget::OwnLesson(card) => vec![format!("own-lesson={card}")],
            LinkTarget::Text { title, text } => vec![packed_pair("text", text), pair("title", title)],
        };
        let mut copy = self.clone();
        let mut texts = |of: &[(&str, LinkText)]| {
            let text = |(key, of): &(&str, LinkText)| of(&mut copy).as_deref().map(|text| pair(key, text));
            of.iter().filter_map(text).collect::<Vec<_>>()
        };
        parts.extend(self.solution.as_deref().map(|lines| packed_pair("solution", lines)));
        parts.extend(texts(&TEXTS));
        parts.extend(self.step.map(|step| format!("step={step}")));
        parts.extend(self.event.map(|event| format!("event={event}")));
        parts.extend(self.device.map(|device| format!("device={device}")));
        parts.extend(self.block.map(|block| format!("block={block}")));
        parts.extend(texts(&LATER_TEXTS));
        parts.join("&")
    }
}

/// The target of a part that has the whole target, as it is written.
fn target_of(key: &str, value: &str) -> Option<LinkTarget> {
    let value = value.to_owned();
    Some(match key {
        "lessons" => LinkTarget::Place(Place::Lessons),
        "glossary" => LinkTarget::Place(Place::Glossary(value)),
        // Links to the former row of all questions are in courses.
        "practice" | "quiz" => LinkTarget::Place(Place::Practice),
        "teachers" => LinkTarget::Place(Place::Teachers(TeachersPage::from_name(&value))),
        "make-lesson" => LinkTarget::Place(Place::MakeLesson),
        "workbench" => LinkTarget::Place(Place::Workbench),
        "handout" => LinkTarget::Place(Place::Handout(value)),
        "plan" => LinkTarget::Place(Place::Plan(value)),
        "python" => LinkTarget::ProgramExample(value),
        "preset" => LinkTarget::Preset(value),
        "sample" => LinkTarget::Sample(value),
        "open" => LinkTarget::Beside(value),
        "own-file" => LinkTarget::OwnFile,
        _ => return None,
    })
}

/// The part of an address that names a place; `None` for the first screen, and for places whose address has
/// more than the place.
fn place_part(place: &Place) -> Option<String> {
    let word = |word: &str| Some(word.to_owned());
    match place {
        Place::Home | Place::Lesson { .. } | Place::OwnLesson | Place::Program => None,
        Place::Lessons => word("lessons"),
        Place::Handout(ids) => Some(pair("handout", ids)),
        Place::Plan(ids) => Some(pair("plan", ids)),
        Place::Glossary(entry) => Some(optional_pair("glossary", entry)),
        Place::Practice => word("practice"),
        Place::Teachers(page) => Some(optional_pair("teachers", page.name())),
        Place::MakeLesson => word("make-lesson"),
        Place::Workbench => word("workbench"),
    }
}

/// The value of a result; an error is added to the problems.
fn keep_problem<T>(result: Result<T, LinkTextError>, problems: &mut LinkProblems) -> Option<T> {
    result.map_err(|error| problems.push(error.to_string())).ok()
}

/// A text as addresses have it.
pub(crate) fn packed(text: &str) -> String {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    // Writing into a vector cannot fail.
    let _ = encoder.write_all(text.as_bytes());
    format!("{VERSION}{}", URL_SAFE_NO_PAD.encode(encoder.finish().unwrap_or_default()))
}

/// Why the text in an address cannot be read.
#[derive(Debug, Error)]
pub(crate) enum LinkTextError {
    #[error("its text is cut off")]
    CutOff,
    #[error("its text has the form {0}, which only a newer Blockyard reads")]
    Newer(String),
    #[error("its text is damaged, perhaps cut off on the way")]
    Letters(#[from] base64::DecodeError),
    #[error("its text is damaged, perhaps cut off on the way")]
    Compression(#[from] std::io::Error),
    #[error("its text is longer than 4 MiB")]
    TooLong,
}

/// A text that an address has.
///
/// # Errors
///
/// Why the text cannot be read.
pub(crate) fn unpacked(value: &str) -> Result<String, LinkTextError> {
    let (version, rest) = value.split_once('.').ok_or(LinkTextError::CutOff)?;
    if version != VERSION.trim_end_matches('.') {
        return Err(LinkTextError::Newer(version.to_owned()));
    }
    let bytes = URL_SAFE_NO_PAD.decode(rest)?;
    let mut text = String::new();
    let mut decoder = DeflateDecoder::new(bytes.as_slice()).take(MAX_TEXT_BYTES + 1);
    decoder.read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(LinkTextError::TooLong);
    }
    Ok(text)
}

fn packed_pair(key: &str, text: &str) -> String {
    format!("{key}={}", packed(text))
}

/// The key alone for an empty value.
fn optional_pair(key: &str, value: &str) -> String {
    if value.is_empty() { key.to_owned() } else { pair(key, value) }
}

fn pair(key: &str, value: &str) -> String {
    format!("{key}={}", escaped(value))
}

/// The characters that a value has as they are, beside letters and digits.
const PLAIN: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b':')
    .remove(b',')
    .remove(b'/')
    .remove(b' ');

/// A value as addresses write it. A space becomes a plus.
fn escaped(value: &str) -> String {
    utf8_percent_encode(value, &PLAIN).to_string().replace(' ', "+")
}

fn unescaped(value: &str) -> String {
    percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn both_ways(link: &Link) -> String {
        let hash = link.write();
        assert_eq!(Link::read(&hash), (link.clone(), Vec::new()), "{hash}");
        hash
    }

    #[test]
    fn links_that_people_write_are_readable() {
        let step = |target| Link { target, step: Some(5), ..Link::default() };
        assert_eq!(both_ways(&step(LinkTarget::Preset("terms".to_owned()))), "preset=terms&step=5");
        let lesson = LinkTarget::Lesson { id: "streams".to_owned(), card: 4 };
        assert_eq!(both_ways(&Link { target: lesson, ..Link::default() }), "lesson=streams&card=4");
        assert_eq!(both_ways(&Link::default()), "");
        assert_eq!(both_ways(&step(LinkTarget::OwnFile)), "own-file&step=5");
        assert_eq!(both_ways(&LinkTarget::OwnLesson(3).into()), "own-lesson=3");
        let text = "---\nid: x\n---\n".to_owned();
        let simple = [Place::Lessons, Place::Practice, Place::MakeLesson, Place::Workbench];
        for page in TeachersPage::ALL {
            both_ways(&LinkTarget::Place(Place::Teachers(page)).into());
        }
        let texts = [false, true].map(|is_for_class| LinkTarget::LessonText {
            text: text.clone(),
            card: 2,
            is_for_class,
        });
        for target in simple.map(LinkTarget::Place).into_iter().chain(texts) {
            both_ways(&Link { target, ..Link::default() });
        }
        both_ways(&Link {
            target: LinkTarget::Place(Place::Glossary("reserved".to_owned())),
            ..Link::default()
        });
        assert_eq!(
            both_ways(&step(LinkTarget::Beside("rank 0.pickle".to_owned()))),
            "open=rank+0.pickle&step=5"
        );
        let lesson = LinkTarget::Lesson { id: "tensor".to_owned(), card: 6 };
        let lines = "batch = torch.empty(3, device=\"cuda\")\n    # é".to_owned();
        let hash = both_ways(&Link { target: lesson, solution: Some(lines), ..Link::default() });
        assert!(hash.starts_with("lesson=tensor&card=6&solution=1."), "{hash}");
        let lesson = LinkTarget::Lesson { id: "training".to_owned(), card: 2 };
        let sliders = Some("layers:12,batch:8".to_owned());
        assert_eq!(
            both_ways(&Link { target: lesson, sliders, ..Link::default() }),
            "lesson=training&card=2&sliders=layers:12,batch:8"
        );
        let plan = LinkTarget::Place(Place::Plan("tensor,reserved".to_owned()));
        assert_eq!(both_ways(&plan.into()), "plan=tensor,reserved");
        let (link, problems) = Link::read("#card=3&lesson=streams");
        assert_eq!(link.target, LinkTarget::Lesson { id: "streams".to_owned(), card: 3 });
        assert!(problems.is_empty());
    }

    #[test]
    fn everything_of_a_view_comes_back() {
        let link = Link {
            target: LinkTarget::Text {
                title: "Mine & \"yours\" 100%".to_owned(),
                text: "a = alloc 3 MiB # é\nfree a\n".to_owned(),
            },
            conf: Some("expandable_segments:True,max_split_size_mb:64".to_owned()),
            capacity: Some("1.5 GiB".to_owned()),
            gpu: Some("a100-80".to_owned()),
            release: Some("2.15".to_owned()),
            arguments: Some("--name 'a b' --size 8".to_owned()),
            class_plan: Some("tensor:exercise,nvidia-smi:home".to_owned()),
            sliders: Some("setting:max_split_size_mb:32,rows:8".to_owned()),
            revealed: Some("2,5".to_owned()),
            step: Some(2),
            event: Some(17),
            device: Some(1),
            block: Some(3),
            theme: Some("dark".to_owned()),
            lab: Some("what-if".to_owned()),
            question_conf: Some("roundup_power2_divisions:[256:1,>:4]".to_owned()),
            question_capacity: Some("24 GiB".to_owned()),
            question_limit: Some("8 GiB".to_owned()),
            solution: Some("x = 1\n".to_owned()),
        };
        both_ways(&link);
    }

    #[test]
    fn a_lesson_of_two_hundred_steps_takes_less_than_two_kilobytes() {
        let mut text = String::new();
        for step in 0..200_u32 {
            let size = [1, 2, 4, 12, 20, 512, 1024, 3072][(step * 5 % 8) as usize];
            let _ = writeln!(text, "# what step {step} shows\nt{step} = alloc {size} KiB");
        }
        let link =
            Link { target: LinkTarget::Text { title: "Two hundred".to_owned(), text }, ..Link::default() };
        let hash = both_ways(&link);
        assert!(hash.len() < 2048, "{}", hash.len());
    }

    #[test]
    fn a_broken_or_newer_link_says_so_and_keeps_the_rest() {
        let cases = [
            ("preset=terms&shoes=2", "\"shoes\" is not known"),
            ("preset=terms&step=five", "its step, \"five\""),
            ("preset=terms&text=1.@@@@", "damaged"),
            ("preset=terms&text=1.eJw", "damaged"),
            ("preset=terms&text=2.abc", "newer Blockyard"),
            ("preset=terms&solution=1.eJw", "damaged"),
            ("preset=terms&text=abc", "cut off"),
        ];
        for (hash, said) in cases {
            let (link, problems) = Link::read(hash);
            assert_eq!(link.target, LinkTarget::Preset("terms".to_owned()), "{hash}");
            assert!(problems.len() == 1 && problems[0].contains(said), "{hash}: {problems:?}");
        }
        // A link that is cut off anywhere is read without a panic.
        let target = LinkTarget::Text { title: "t".to_owned(), text: "a = alloc 3 MiB\n".repeat(50) };
        let whole = Link { target, step: Some(3), ..Link::default() }.write();
        for end in 0..whole.len() {
            let _ = Link::read(&whole[..end]);
        }
    }

    #[test]
    fn any_characters_are_read_without_a_panic() {
        for hash in ["%", "%4", "%zz", "a=%ff%fe", "=&=&&", "text=1.", "step=99999999999999999999999", "é=ü"]
        {
            let _ = Link::read(hash);
        }
    }
}
