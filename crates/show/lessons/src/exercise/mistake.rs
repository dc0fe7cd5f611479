//! The first difference between the reader's run and the run that solves the exercise: a sentence about the
//! reader's program, and a hint with what the solution does.
//!
//! Both runs are compared by their effects on memory: tensors that are made, by their size; tensors that are
//! freed; segments that go back to the device. Everything before the first difference is equal, so the
//! sentence is about one line of the reader.

use std::cmp::Ordering;
use std::collections::HashMap;

use blockyard_record::{AllocationId, BlockId, Bytes, Event, Recording, Step};

use super::ExerciseLanguage;
use crate::document::Field;
use crate::error::{LessonError, LessonErrorKind};

/// The first difference between an answer and the lesson's solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What the answer does, without a full stop; it says nothing of the solution.
    pub sentence: String,
    /// What the solution does there, without a full stop, for a reader who asks for a hint; may be empty.
    pub hint: String,
}

impl Mistake {
    pub(super) fn new(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), hint: hint.into() }
    }
}

/// A mistake that the author of an exercise expects: a line of the answer that ends with this code.
#[derive(Clone, Debug)]
pub(super) struct KnownMistake {
    pub(super) code: String,
    /// What the line does, without a full stop.
    pub(super) sentence: String,
}

impl KnownMistake {
    /// Reads `CODE => SENTENCE`.
    pub(super) fn parse(field: &Field) -> Result<Self, LessonError> {
        let unexpected = || {
            let found = field.value.clone();
            field.at.at(LessonErrorKind::Unexpected { expected: "CODE => SENTENCE", found })
        };
        let (code, sentence) = field.value.split_once("=>").ok_or_else(unexpected)?;
        let (code, sentence) = (code.trim(), sentence.trim());
        if code.is_empty() || sentence.is_empty() {
            return Err(unexpected());
        }
        Ok(Self { code: code.to_owned(), sentence: sentence.to_owned() })
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        let code = |line: &str| line.split('#').next().unwrap_or_default().trim_end().ends_with(&self.code);
        text.lines().any(code)
    }
}

/// A run, and which line of its text made each step.
#[derive(Clone, Copy, Debug)]
pub struct RunOfLines<'a> {
    /// The run.
    pub recording: &'a Recording,
    /// The line of each step, counted from 1; 0 where none is known.
    pub lines: &'a [u32],
}

/// An act of a run that changes memory. Tensors are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Make(Bytes),
    Free(usize),
    /// Segments of this size go back to the device, and not for a request.
    Release(Bytes),
}

/// The acts of a run in their order, and the tensors that it makes.
struct Acts {
    all: Vec<(Act, u32)>,
    made: Vec<MadeTensor>,
    language: ExerciseLanguage,
    /// Whether no request failed. The acts end where one failed: what Python frees after an exception is no
    /// line's act.
    is_whole: bool,
}

struct MadeTensor {
    size: Bytes,
    line: u32,
    name: Option<String>,
}

impl Acts {
    fn of(run: &RunOfLines<'_>, language: ExerciseLanguage) -> Self {
        let mut acts = Self { all: Vec::new(), made: Vec::new(), language, is_whole: true };
        let mut in_blocks: HashMap<BlockId, usize> = HashMap::new();
        let mut segments = HashMap::new();
        let mut steps =
            (0..run.recording.step_count()).filter_map(|step| Some((step, run.recording.step(step)?)));
        let mut current = steps.next();
        let mut released = Bytes::ZERO;
        for (place, event) in run.recording.events_from(0).enumerate() {
            while current.as_ref().is_some_and(|(_, events)| place >= events.end) {
                acts.end_step(current, run, &mut released);
                current = steps.next();
            }
            let line = line_of(current, run);
            match event {
                Event::SegmentAllocated { segment, size, .. } => {
                    segments.insert(segment, size);
                }
                Event::SegmentReleased { segment, .. } => {
                    released = released.saturating_add(segments.remove(&segment).unwrap_or_default());
                }
                Event::Allocated { block, allocation, requested, .. } => {
                    // The allocator released these segments for the request; the program did not release
                    // them.
                    released = Bytes::ZERO;
                    in_blocks.insert(block, acts.made.len());
                    acts.make(run.recording, allocation, requested, line);
                }
                Event::OutOfMemory { .. } => {
                    acts.is_whole = false;
                    return acts;
                }
                Event::FreeRequested { block, .. } => {
                    if let Some(number) = in_blocks.remove(&block) {
                        acts.all.push((Act::Free(number), line));
                    }
                }
                _ => {}
            }
        }
        acts.end_step(current, run, &mut released);
        acts
    }

    fn make(&mut self, recording: &Recording, allocation: AllocationId, size: Bytes, line: u32) {
        self.all.push((Act::Make(size), line));
        let name = recording.name(allocation).map(ToOwned::to_owned);
        self.made.push(MadeTensor { size, line, name });
    }

    fn end_step(&mut self, current: Option<(usize, Step)>, run: &RunOfLines<'_>, released: &mut Bytes) {
        if !released.is_zero() {
            self.all.push((Act::Release(*released), line_of(current, run)));
            *released = Bytes::ZERO;
        }
    }

    /// The line in which the run does `wanted` after the act number `after`; `None` if it does not.
    fn later(&self, after: usize, wanted: Act) -> Option<u32> {
        let mut later = self.all.iter().skip(after);
        later.find(|(act, _)| *act == wanted).map(|(_, line)| *line)
    }

    /// A tensor in words, as the subject of a sentence: `b`, or `the 16 MiB of line 8`; and whether the words
    /// are a name, which is one word.
    fn tensor(&self, number: usize) -> (String, bool) {
        match self.made.get(number) {
            Some(MadeTensor { name: Some(name), .. }) => (format!("`{name}`"), true),
            Some(MadeTensor { size, line: 0, .. }) => (format!("the {size} of an earlier line"), false),
            Some(MadeTensor { size, line, .. }) => (format!("the {size} of line {line}"), false),
            None => ("a tensor".to_owned(), true),
        }
    }

    /// The tensor that the act with this number makes, in words: `b (8 MiB)`, or `8 MiB`.
    fn making(&self, place: usize, size: Bytes) -> String {
        let before = self.all.iter().take(place).filter(|(act, _)| matches!(act, Act::Make(_))).count();
        match self.made.get(before).and_then(|made| made.name.as_ref()) {
            Some(name) => format!("`{name}` ({size})"),
            None => size.to_string(),
        }
    }
}

fn line_of(current: Option<(usize, Step)>, run: &RunOfLines<'_>) -> u32 {
    let step = current.map(|(step, _)| step);
    step.and_then(|step| run.lines.get(step)).copied().unwrap_or(0)
}

/// The first difference between the reader's run and the run that solves the exercise: the act of the reader's
/// line, and as a hint the act of the solution in its place. `text` is the reader's whole text. `None` where
/// both do the same.
pub(super) fn mistake(
    text: &str,
    language: ExerciseLanguage,
    own: &RunOfLines<'_>,
    solved: &RunOfLines<'_>,
) -> Option<Mistake> {
    let (mut own, solved) = (Acts::of(own, language), Acts::of(solved, language));
    for _ in 0..MAX_IN_ADDITION {
        match difference(text, &own, &solved) {
            Err(InAddition(place)) => own.leave_out(place),
            Ok(found) => return found,
        }
    }
    None
}

/// A program that makes more tensors in addition than this is another program.
const MAX_IN_ADDITION: usize = 64;

/// The number of an act that makes a tensor that the solution does without, which explains nothing.
struct InAddition(usize);

/// The first difference of two runs; `None` if its cause is unknown.
fn difference(text: &str, own: &Acts, solved: &Acts) -> Result<Option<Mistake>, InAddition> {
    let same = own.all.iter().zip(&solved.all).take_while(|((one, _), (other, _))| one == other).count();
    let wanted = solved.all.get(same).map(|(act, _)| *act);
    let Some((act, line)) = own.all.get(same).copied() else {
        return Ok(wanted.and_then(|wanted| missing(own, wanted)));
    };
    let place = at(text, line);
    let found = match (act, wanted) {
        (Act::Make(size), Some(Act::Free(held))) => {
            let making = own.making(same, size);
            still_held(own, held, &format!("{place} makes {making}"), line, own.later(same, Act::Free(held)))
        }
        (Act::Make(size), wanted) => match made(own, solved, same, &place, size, wanted)? {
            Some(found) => found,
            None => return Ok(None),
        },
        (Act::Free(freed), wanted) => match freed_early(own, same, &place, freed, wanted) {
            Some(found) => found,
            None => return Ok(None),
        },
        (Act::Release(_), Some(Act::Free(held))) if solved.releases_after(same) => {
            let released = format!("{place} empties the cache");
            still_held(own, held, &released, line, own.later(same, Act::Free(held)))
        }
        (Act::Release(size), _) => Mistake::new(
            format!(
                "{place} gives {size} of cached memory back to the device, and the next large request has to \
                 take a new segment"
            ),
            "the goals are met without that",
        ),
    };
    // The error names another request, which comes later.
    let sentence =
        if own.is_whole { found.sentence } else { format!("before the memory runs out, {}", found.sentence) };
    Ok(Some(Mistake { sentence, ..found }))
}

/// The mistake of making a tensor that the solution does not make there; `None` where the order explains nothing.
fn made(
    own: &Acts,
    solved: &Acts,
    same: usize,
    place: &str,
    size: Bytes,
    wanted: Option<Act>,
) -> Result<Option<Mistake>, InAddition> {
    const SOLVED: &str = "a program that meets all goals makes";
    let making = format!("{place} makes {}", own.making(same, size));
    Ok(Some(match wanted {
        Some(Act::Make(other)) => {
            let is_later = own.later(same, Act::Make(other)).is_some();
            if is_later && solved.later(same, Act::Make(size)).is_some() {
                // In another order, and none more: else the tensor is one that the solution does without. A run
                // that failed is compared with as much of the solution.
                let most = if own.is_whole { usize::MAX } else { own.all.len() };
                let count = |acts: &Acts| {
                    acts.all.iter().take(most).filter(|(act, _)| *act == Act::Make(size)).count()
                };
                match count(own).cmp(&count(solved)) {
                    Ordering::Less => return Ok(None),
                    Ordering::Equal => {}
                    Ordering::Greater => return Err(InAddition(same)),
                }
                Mistake::new(
                    format!("{making} before the {other} that come later"),
                    format!("{SOLVED} these {other} first"),
                )
            } else if is_later {
                Mistake::new(format!("{making} and then {other}"), format!("{SOLVED} the {other} alone"))
            } else {
                Mistake::new(
                    format!("{making}, and the goals need less or other memory there"),
                    format!("{SOLVED} {other} there"),
                )
            }
        }
        Some(Act::Release(_)) => {
            Mistake::new(format!("{making} while the cache still has what is not needed"), "empty it before")
        }
        _ => Mistake::new(
            format!("{making}, which the goals do not need"),
            format!("{SOLVED} no tensor after those before"),
        ),
    }))
}

impl Acts {
    /// Leaves out the tensor that the act with this number makes.
    fn leave_out(&mut self, place: usize) {
        let before = self.all.iter().take(place).filter(|(act, _)| matches!(act, Act::Make(_))).count();
        self.all.remove(place);
        self.made.remove(before);
        self.all.retain(|(act, _)| *act != Act::Free(before));
        for (act, _) in &mut self.all {
            if let Act::Free(number) = act
                && *number > before
            {
                *number -= 1;
            }
        }
    }

    fn releases_after(&self, place: usize) -> bool {
        self.all.iter().skip(place).any(|(act, _)| matches!(act, Act::Release(_)))
    }
}

/// Why a tensor is still held, as a clause: a tensor of a program is also held by other objects than names.
fn keeper(language: ExerciseLanguage, it: &str) -> String {
    match language {
        ExerciseLanguage::Workload => format!("a name keeps {it}"),
        ExerciseLanguage::Python => format!("a name, a list or the backward pass keeps {it}"),
    }
}

/// The line with its text, as the beginning of a sentence.
pub(super) fn at(text: &str, line: u32) -> String {
    let index = usize::try_from(line).ok().and_then(|line| line.checked_sub(1));
    match index.and_then(|index| text.lines().nth(index)).map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => format!("line {line}, `{text}`,"),
        None if line > 0 => format!("line {line}"),
        None => "the program".to_owned(),
    }
}

/// The mistake of an act that is too early, since a tensor is still held.
fn still_held(own: &Acts, held: usize, what: &str, made_in: u32, freed_in: Option<u32>) -> Mistake {
    let (tensor, is_one) = own.tensor(held);
    let (are, it) = if is_one { ("is", "it") } else { ("are", "them") };
    let why = match freed_in {
        // A name that is bound anew holds the old tensor until then.
        Some(line) if line == made_in => ", until the line is done".to_owned(),
        Some(line) if line > 0 => format!(", until line {line}"),
        _ => format!(": {}", keeper(own.language, it)),
    };
    Mistake::new(format!("{what} while {tensor} {are} still held{why}"), format!("free {it} first"))
}

/// `None` where the order explains nothing: the solution frees another tensor there, or the reader's run never makes
/// the one that the solution makes.
fn freed_early(own: &Acts, same: usize, place: &str, freed: usize, wanted: Option<Act>) -> Option<Mistake> {
    let (tensor, _) = own.tensor(freed);
    Some(match wanted {
        Some(Act::Make(size)) => {
            own.later(same, Act::Make(size)).filter(|_| own.is_whole)?;
            Mistake::new(format!("{place} frees {tensor} before the next {size} are made"), "make them first")
        }
        Some(Act::Free(_)) => return None,
        Some(Act::Release(_)) => {
            Mistake::new(format!("{place} frees {tensor}, and the cache still has all"), "empty it before")
        }
        None => Mistake::new(
            format!("{place} frees {tensor}, which is not needed"),
            "a program that meets all goals keeps it",
        ),
    })
}

/// The mistake of an act that the reader's run lacks although everything before is equal.
fn missing(own: &Acts, wanted: Act) -> Option<Mistake> {
    match wanted {
        Act::Free(held) => {
            let (tensor, is_one) = own.tensor(held);
            let (are, it) = if is_one { ("is", "it") } else { ("are", "them") };
            let when = if own.is_whole { "at the end" } else { "when the memory runs out" };
            let keeper = keeper(own.language, it);
            Some(Mistake::new(format!("{tensor} {are} still held {when}: {keeper}"), ""))
        }
        // A program that failed did not come so far.
        _ if !own.is_whole => None,
        Act::Make(size) => Some(Mistake::new(
            "the program ends, and a tensor is missing",
            format!("a program that meets all goals makes one more tensor, of {size}"),
        )),
        Act::Release(_) => Some(Mistake::new(
            "after the last free, memory stays in the cache",
            "`empty_cache` gives back what is cached at that moment",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use blockyard_record::Bytes;
    use blockyard_replay::{RunSettings, run};
    use blockyard_rules::AllocatorConfig;
    use blockyard_workload::Workload;

    use super::*;

    /// The sentence, and the hint after a bar.
    fn found(own: &str, solved: &str) -> Option<String> {
        let [own_run, solved_run] = [own, solved].map(|text| {
            let workload = Workload::parse(text).unwrap();
            let settings = RunSettings {
                title: String::new(),
                config: AllocatorConfig::default(),
                capacity: Bytes::gib(1),
            };
            let recording = run(&workload, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
            let lines: Vec<u32> =
                (0..workload.requests().len()).map(|at| workload.line(at).unwrap_or(0)).collect();
            (recording, lines)
        });
        let [own_run, solved_run] =
            [&own_run, &solved_run].map(|(recording, lines)| RunOfLines { recording, lines });
        let Mistake { sentence, hint } = mistake(own, ExerciseLanguage::Workload, &own_run, &solved_run)?;
        Some(if hint.is_empty() { sentence } else { format!("{sentence} | {hint}") })
    }

    #[test]
    fn the_first_difference_says_what_a_line_does() {
        let solved = "a = alloc 16 MiB\nfree a\nb = alloc 16 MiB\n";
        assert_eq!(
            found("a = alloc 16 MiB\nb = alloc 16 MiB\nfree a\n", solved).unwrap(),
            "line 2, `b = alloc 16 MiB`, makes `b` (16 MiB) while `a` is still held, until line 3 | free it first"
        );
        assert_eq!(
            found("a = alloc 16 MiB\nb = alloc 16 MiB\n", solved).unwrap(),
            "line 2, `b = alloc 16 MiB`, makes `b` (16 MiB) while `a` is still held: a name keeps it | free it first"
        );
        assert_eq!(found(solved, solved), None);
        assert_eq!(
            found("a = alloc 16 MiB\nb = alloc 16 MiB\n", "a = alloc 16 MiB\nb = alloc 16 MiB\nfree b\n")
                .unwrap(),
            "`b` is still held at the end: a name keeps it"
        );
    }

    #[test]
    fn sizes_and_the_order_of_requests_are_told_apart() {
        let solved = "a = alloc 8 MiB\nb = alloc 16 MiB\n";
        assert_eq!(
            found("b = alloc 16 MiB\na = alloc 8 MiB\n", solved).unwrap(),
            "line 1, `b = alloc 16 MiB`, makes `b` (16 MiB) before the 8 MiB that come later | a program that meets all goals makes these 8 MiB first"
        );
        assert_eq!(
            found("a = alloc 12 MiB\nb = alloc 16 MiB\n", solved).unwrap(),
            "line 1, `a = alloc 12 MiB`, makes `a` (12 MiB), and the goals need less or other memory there | a program that meets all goals makes 8 MiB there"
        );
        assert_eq!(
            found("c = alloc 12 MiB\na = alloc 8 MiB\nb = alloc 16 MiB\n", solved).unwrap(),
            "line 1, `c = alloc 12 MiB`, makes `c` (12 MiB) and then 8 MiB | a program that meets all goals makes the 8 MiB alone"
        );
        assert_eq!(
            found("a = alloc 8 MiB\nfree a\nb = alloc 16 MiB\n", solved).unwrap(),
            "line 2, `free a`, frees `a` before the next 16 MiB are made | make them first"
        );
    }

    /// The allocator asks once more and fails; what a program frees after the error is no answer's act.
    #[test]
    fn a_run_that_fails_is_compared_up_to_the_failure() {
        let start = "a = alloc 512 MiB\n";
        let solved = format!("{start}free a\nb = alloc 768 MiB\n");
        assert_eq!(
            found(&format!("{start}b = alloc 768 MiB\nfree a\n"), &solved).unwrap(),
            "`a` is still held when the memory runs out: a name keeps it"
        );
        assert_eq!(
            found(&format!("{start}c = alloc 8 MiB\nb = alloc 768 MiB\n"), &solved).unwrap(),
            "before the memory runs out, line 2, `c = alloc 8 MiB`, makes `c` (8 MiB) while `a` is still held: a \
             name keeps it | free it first"
        );
        // The freed tensor is not the cause: the program ended before the next was made.
        assert_eq!(
            found("a = alloc 8 MiB\nb = alloc 2 GiB\nfree a\n", "a = alloc 8 MiB\nc = alloc 1 MiB\n"),
            None
        );
    }

    /// `x` is there in addition: that `b` comes later is not the cause.
    #[test]
    fn a_tensor_in_addition_is_not_taken_for_another_order() {
        let solved = "a = alloc 8 MiB\nb = alloc 16 MiB\ny = alloc 1 MiB\n";
        assert_eq!(found(&solved.replace("b =", "x = alloc 1 MiB\nb ="), solved), None);
    }

    /// Each batch has a small tensor in addition, and its large one is kept.
    #[test]
    fn behind_a_tensor_in_addition_the_cause_is_found() {
        let batch =
            |number: u8, more: &str| format!("a{number} = alloc 8 MiB\nb{number} = alloc 1 KiB\n{more}");
        let kept = batch(1, "c1 = alloc 1 KiB\n") + &batch(2, "c2 = alloc 1 KiB\n");
        let solved = batch(1, "") + &batch(2, "free a1\n");
        assert_eq!(
            found(&kept, &solved).unwrap(),
            "line 6, `c2 = alloc 1 KiB`, makes `c2` (1 KiB) while `a1` is still held: a name keeps it | free it first"
        );
    }

    #[test]
    fn a_free_without_the_tensor_of_the_solution_is_no_cause() {
        assert_eq!(
            found(
                "a = alloc 8 MiB\nfree a\nc = alloc 1 MiB\n",
                "a = alloc 8 MiB\nb = alloc 16 MiB\nfree a\n"
            ),
            None
        );
    }

    #[test]
    fn a_cache_that_is_emptied_too_early_or_in_vain_is_named() {
        let solved = "a = alloc 32 MiB\nb = alloc 64 MiB\nfree a\nfree b\nempty_cache\n";
        assert_eq!(
            found("a = alloc 32 MiB\nb = alloc 64 MiB\nfree a\nempty_cache\nfree b\n", solved).unwrap(),
            "line 4, `empty_cache`, empties the cache while `b` is still held, until line 5 | free it first"
        );
        assert!(
            found("a = alloc 32 MiB\nb = alloc 64 MiB\nfree a\nfree b\n", solved)
                .unwrap()
                .starts_with("after the last free")
        );
        let kept = "a = alloc 32 MiB\nfree a\nb = alloc 32 MiB\n";
        let emptied = found("a = alloc 32 MiB\nfree a\nempty_cache\nb = alloc 32 MiB\n", kept).unwrap();
        assert!(
            emptied.starts_with("line 3, `empty_cache`, gives 32 MiB of cached memory back"),
            "{emptied}"
        );
    }
}
