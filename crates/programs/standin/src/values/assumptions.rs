//! What the host gets where it reads unknown bytes: an assumption, and a line in the report.

use std::collections::BTreeMap;
use std::env;
use std::sync::{Mutex, OnceLock, PoisonError};

use blockyard_gpus::Assumption;
use blockyard_hooks::variables;

use crate::abi::Out;
use crate::memory::{Certainty, HostRead};
use crate::python::{self, PythonLine};
use crate::report;
use crate::values::{frames, python as helper};

/// Unknown values that one line may read: a loop that waits for a value of the device ends here.
const MAX_READS: u64 = 100_000;

/// One in so many unknown truth values of a line is true, so that a loop ends which goes on until one is, such
/// as that of a solver that rejects each step.
const READS_UNTIL_TRUE: u64 = 64;

/// PyTorch's number of `bool`.
pub(super) const BOOL: i32 = 11;

/// The values that a person gave, one a line, in `STANDIN_ASSUME`.
fn given() -> &'static [Assumption] {
    static GIVEN: OnceLock<Vec<Assumption>> = OnceLock::new();
    GIVEN.get_or_init(|| {
        let text = env::var(variables::ASSUME).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    })
}

/// The value that a person gave for this line; `None` where nobody gave one.
fn given_at(place: &PythonLine) -> Option<f64> {
    given().iter().find(|assumption| assumption.is_for(&place.file, place.line)).map(|found| found.value)
}

/// How often a line read an unknown value.
fn reads_at(place: &PythonLine) -> u64 {
    static READS: Mutex<BTreeMap<(String, i32), u64>> = Mutex::new(BTreeMap::new());
    let mut reads = READS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = reads.entry((place.file.clone(), place.line)).or_default();
    *count += 1;
    *count
}

/// A read of bytes that are not exact, and what is known about the read.
#[derive(Clone, Copy, Debug, Default)]
struct Question {
    read: HostRead,
    /// How many results the operator around this read will find.
    results: Option<i64>,
    /// The type of the value, where the host reads one value, as PyTorch numbers types.
    kind: Option<i32>,
    /// The value that a person gave.
    given: Option<f64>,
    /// The bytes that were read.
    bits: u64,
}

/// The value that the host gets in place of unknown bytes, and the reason that the report has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AssumedValue {
    bits: Option<u64>,
    text: String,
}

impl Question {
    /// `None` where the line has read so many unknown values that it waits for one; `reads` counts them, this
    /// one too. `passing` gives another value for a type and a value, where a check would not pass.
    fn answer(
        self,
        reads: impl FnOnce() -> u64,
        passing: impl FnOnce(i32, f64) -> Option<f64>,
    ) -> Option<AssumedValue> {
        let said = |text: &str| Some(AssumedValue { bits: None, text: text.to_owned() });
        let put = |kind, value, text| Some(AssumedValue { bits: Some(bits(kind, value)), text });
        let taken = |kind, value| put(kind, value, format!("assumed to be {value}"));
        let checked = |kind, value| {
            let other = passing(kind, value)?;
            put(kind, other, format!("the check is assumed to pass, with the value {other}"))
        };
        if self.read.unknown == 0 {
            return match (self.read.known, self.kind, self.given) {
                (Certainty::Assumed, Some(kind), Some(value)) => taken(kind, value),
                (Certainty::Assumed, kind, _) => kind
                    .and_then(|kind| checked(kind, number(kind, self.bits)?))
                    .or_else(|| said("it follows from a value that was assumed")),
                _ => said("it was computed by a processor, so that its last digits may differ"),
            };
        }
        if let Some(results) = self.results {
            let results = self.given.map_or(results, whole);
            let text = format!("a count that a kernel would have found, assumed to be {results}");
            return Some(AssumedValue { bits: Some(results.cast_unsigned()), text });
        }
        let reads = reads();
        if reads > MAX_READS {
            return None;
        }
        match (self.kind, self.given) {
            (Some(kind), Some(value)) => taken(kind, value),
            (Some(kind), None) => {
                let value = assumed(kind, reads);
                checked(kind, value).or_else(|| taken(kind, value))
            }
            (None, _) => said("assumed to be 0"),
        }
    }
}

/// The host read `count` bytes of the device into `to`: says so where they are not sure, and puts an
/// assumption there where they are unknown, or the value that a person gave where they are unknown or
/// assumed. An error where the line has read so many unknown values that it waits for one.
///
/// No lock of the library may be held: the line is asked of Python.
pub(crate) fn read(to: Out<u8>, count: u64, read: HostRead) -> Result<(), ()> {
    if read.unknown == 0 && matches!(read.known, Certainty::Exact | Certainty::Unknown) {
        return Ok(());
    }
    let results = frames::count().filter(|_| matches!(count, 1 | 4 | 8));
    if let Some((results, false)) = results.filter(|_| read.unknown > 0) {
        put(to, count, results.cast_unsigned());
        return Ok(());
    }
    let place = python::place();
    let kind = frames::value();
    // Whether all elements are equal is a truth value and no number of results.
    let results = results.filter(|_| kind != Some(BOOL)).map(|(results, _)| results);
    let question = Question { read, results, kind, given: given_at(&place), bits: taken(to, count) };
    let Some(answer) = question.answer(|| reads_at(&place), helper::passing) else {
        report::report_estimate(
            "the program waits for a value that a kernel would have computed: it was ended; name the value with --assume",
        );
        return Err(());
    };
    if let Some(bits) = answer.bits {
        put(to, count, bits);
    }
    report::report_read(&place, count, &answer.text);
    Ok(())
}

/// The first 8 bytes that were read, or as many as there are.
fn taken(to: Out<u8>, count: u64) -> u64 {
    let mut bytes = [0; 8];
    for (place, byte) in bytes.iter_mut().enumerate().take(usize::try_from(count).unwrap_or(8)) {
        *byte = to.get_at(place).unwrap_or(0);
    }
    u64::from_le_bytes(bytes)
}

fn put(to: Out<u8>, count: u64, value: u64) {
    for (place, byte) in value.to_le_bytes().into_iter().enumerate().take(usize::try_from(count).unwrap_or(0))
    {
        to.put_at(place, byte);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a person's number for a count")]
fn whole(value: f64) -> i64 {
    value as i64
}

/// A value of this type: a number that is finite, not zero, and falls from read to read, as losses do; 1 for
/// an integer; false, and true once in [`READS_UNTIL_TRUE`] reads.
#[expect(clippy::cast_precision_loss, reason = "the value is an assumption")]
fn assumed(kind: i32, reads: u64) -> f64 {
    match kind {
        5 | 6 | 7 | 15 => 0.5 + 0.5 / reads as f64,
        BOOL => f64::from(u8::from(reads.is_multiple_of(READS_UNTIL_TRUE))),
        _ => 1.0,
    }
}

/// The bytes of a value, by PyTorch's number of its type.
#[expect(clippy::cast_possible_truncation, reason = "the value is made to fit its type")]
fn bits(kind: i32, value: f64) -> u64 {
    match kind {
        7 => value.to_bits(),
        6 => u64::from((value as f32).to_bits()),
        15 => u64::from((value as f32).to_bits() >> 16),
        5 => u64::from(half(value as f32)),
        BOOL => u64::from(value != 0.0),
        _ => (value as i64).cast_unsigned(),
    }
}

/// The value of these bytes; `None` for a float type of 16 bits, and for a type without numbers.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "the value is an assumption"
)]
fn number(kind: i32, bits: u64) -> Option<f64> {
    match kind {
        7 => Some(f64::from_bits(bits)),
        6 => Some(f32::from_bits(bits as u32).into()),
        0 | BOOL => Some(f64::from(bits as u8)),
        1 => Some(f64::from(bits as i8)),
        2 => Some(f64::from(bits as i16)),
        3 => Some(f64::from(bits as i32)),
        4 => Some(bits.cast_signed() as f64),
        _ => None,
    }
}

/// A number as 16 bits (`float16`), with its last digits cut off; a number beyond the range becomes the
/// nearest in the range.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let exponent = i32::try_from(bits >> 23 & 0xff).unwrap_or(0) - 127 + 15;
    let sign = (bits >> 16 & 0x8000) as u16;
    match exponent {
        ..=0 => sign,
        31.. => sign | 0x7bff,
        _ => sign | u16::try_from(exponent).unwrap_or(0) << 10 | (bits >> 13 & 0x3ff) as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::{BOOL, MAX_READS, Question, assumed, bits, number};
    use crate::memory::{Certainty, HostRead};

    /// PyTorch's number of `float32`.
    const FLOAT: i32 = 6;

    #[test]
    fn values_have_the_bytes_of_their_type() {
        assert_eq!(bits(6, 0.75), 0x3f40_0000);
        assert_eq!(bits(15, 0.75), 0x3f40);
        assert_eq!(bits(5, 0.75), 0x3a00);
        assert_eq!(bits(5, 1e9), 0x7bff);
        assert_eq!(bits(4, -1.0), u64::MAX);
        assert_eq!((bits(11, 2.0), bits(11, 0.0)), (1, 0));
        for (kind, value) in [(6, 0.75), (7, 0.75), (4, -1.0), (3, -2.0), (0, 200.0), (11, 1.0)] {
            assert_eq!(number(kind, bits(kind, value)), Some(value));
        }
        assert!(assumed(6, 2) < assumed(6, 1) && assumed(6, 1 << 40) >= 0.5);
        let truths: Vec<_> = (1..=128).filter(|reads| assumed(BOOL, *reads) > 0.0).collect();
        assert_eq!(truths, [64, 128], "a loop that waits for a truth value ends");
    }

    fn answer(question: Question, reads: u64) -> Option<(Option<u64>, String)> {
        question.answer(|| reads, |_, _| None).map(|answer| (answer.bits, answer.text))
    }

    #[test]
    fn a_person_gives_what_is_unknown_or_assumed() {
        let unknown =
            Question { read: HostRead { unknown: 4, known: Certainty::Exact }, ..Question::default() };
        let number = Question { kind: Some(FLOAT), ..unknown };
        assert_eq!(answer(number, 1), Some((Some(bits(FLOAT, 1.0)), "assumed to be 1".to_owned())));
        let given = Question { given: Some(0.25), ..number };
        assert_eq!(answer(given, 1), Some((Some(bits(FLOAT, 0.25)), "assumed to be 0.25".to_owned())));
        assert_eq!(answer(given, MAX_READS + 1), None);
        assert_eq!(answer(unknown, 1), Some((None, "assumed to be 0".to_owned())));

        let known = HostRead { unknown: 0, known: Certainty::Assumed };
        let flag = Question { read: known, kind: Some(BOOL), ..Question::default() };
        assert_eq!(answer(flag, 1).map(|(bits, _)| bits), Some(None), "the bytes stay");
        let given = Question { given: Some(1.0), ..flag };
        assert_eq!(answer(given, 1), Some((Some(1), "assumed to be 1".to_owned())));
        // Of many values a person names none.
        assert_eq!(answer(Question { kind: None, ..given }, 1).map(|(bits, _)| bits), Some(None));
        let rounded = Question { read: HostRead { known: Certainty::Rounded, ..known }, ..given };
        assert_eq!(answer(rounded, 1).map(|(bits, _)| bits), Some(None), "a rounded value is known");
    }

    #[test]
    fn a_check_passes_where_its_value_is_not_known() {
        let passing = |_, value| (value == 0.0).then_some(1.0);
        let unknown = HostRead { unknown: 1, known: Certainty::Exact };
        let assumed = HostRead { unknown: 0, known: Certainty::Assumed };
        let text = "the check is assumed to pass, with the value 1";
        for read in [unknown, assumed] {
            let flag = Question { read, kind: Some(BOOL), ..Question::default() };
            let answer = flag.answer(|| 1, passing).map(|answer| (answer.bits, answer.text));
            assert_eq!(answer, Some((Some(1), text.to_owned())));
            let given = Question { given: Some(0.0), ..flag };
            assert_eq!(given.answer(|| 1, passing).and_then(|answer| answer.bits), Some(0));
        }
        let number = Question { read: unknown, kind: Some(FLOAT), ..Question::default() };
        assert_eq!(number.answer(|| 1, passing).and_then(|answer| answer.bits), Some(bits(FLOAT, 1.0)));
    }

    #[test]
    fn a_person_gives_a_number_of_results() {
        let unknown = HostRead { unknown: 8, known: Certainty::Exact };
        let count = Question { read: unknown, results: Some(50), ..Question::default() };
        assert_eq!(answer(count, 1).map(|(bits, _)| bits), Some(Some(50)));
        let given = Question { given: Some(40.0), ..count };
        let text = "a count that a kernel would have found, assumed to be 40".to_owned();
        assert_eq!(answer(given, 1), Some((Some(40), text)));
    }
}
