//! What the host gets where it reads bytes that nobody knows: an assumption, and a line in the report.

use std::collections::BTreeMap;
use std::env;
use std::sync::{Mutex, OnceLock, PoisonError};

use blockyard_gpus::Assumption;

use crate::abi::Out;
use crate::memory::{Read, Sureness};
use crate::python::{self, Place};
use crate::report;
use crate::values::frames;

/// Unknown values that one line may read: a loop that waits for a value of the device ends here.
const MOST_READS: u64 = 100_000;

/// The values that a person gave, one a line, in `STANDIN_ASSUME`.
fn given() -> &'static [Assumption] {
    static GIVEN: OnceLock<Vec<Assumption>> = OnceLock::new();
    GIVEN.get_or_init(|| {
        let text = env::var("STANDIN_ASSUME").unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    })
}

/// The value that a person gave for this line.
fn given_at(place: &Place) -> Option<f64> {
    given().iter().find(|assumption| assumption.is_for(&place.file, place.line)).map(|found| found.value)
}

/// How often a line read an unknown value.
fn reads_at(place: &Place) -> u64 {
    static READS: Mutex<BTreeMap<(String, i32), u64>> = Mutex::new(BTreeMap::new());
    let mut reads = READS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = reads.entry((place.file.clone(), place.line)).or_default();
    *count += 1;
    *count
}

/// The host read `count` bytes of the device into `to`: says so where they are not sure, and puts an assumption there where they are
/// unknown. An error where the line has read so many unknown values that it waits for one.
///
/// No lock of the library may be held: the line is asked of Python.
pub(crate) fn read(to: Out<u8>, count: u64, read: Read) -> Result<(), ()> {
    if read.unknown == 0 {
        let say = |text: &str| report::read(&python::place(), count, text);
        match read.known {
            Sureness::Assumed => say("it follows from a value that was assumed"),
            Sureness::Rounded => say("it was computed by a processor, so that its last digits may differ"),
            Sureness::Exact | Sureness::Unknown => {}
        }
        return Ok(());
    }
    if let Some((results, is_assumed)) = frames::count().filter(|_| matches!(count, 1 | 4 | 8)) {
        put(to, count, results.cast_unsigned());
        if is_assumed {
            let place = python::place();
            let results = match given_at(&place) {
                Some(value) => whole(value),
                None => results,
            };
            put(to, count, results.cast_unsigned());
            report::read(
                &place,
                count,
                &format!("a count that a kernel would have found, taken to be {results}"),
            );
        }
        return Ok(());
    }
    let place = python::place();
    let reads = reads_at(&place);
    if reads > MOST_READS {
        report::estimate(
            "the program waits for a value that a kernel would have computed: it was ended; name the value with --assume",
        );
        return Err(());
    }
    let value = given_at(&place).or_else(|| frames::value().map(|kind| assumed(kind, reads)));
    let Some((kind, value)) = frames::value().zip(value) else {
        report::read(&place, count, "taken to be 0");
        return Ok(());
    };
    put(to, count, bits(kind, value));
    report::read(&place, count, &format!("taken to be {value}"));
    Ok(())
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

/// A value of this type: a number that is finite, not zero, and falls from read to read, as losses do; 1 for an integer; false.
#[expect(clippy::cast_precision_loss, reason = "the value is an assumption")]
fn assumed(kind: i32, reads: u64) -> f64 {
    match kind {
        5 | 6 | 7 | 15 => 0.5 + 0.5 / reads as f64,
        11 => 0.0,
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
        11 => u64::from(value != 0.0),
        _ => (value as i64).cast_unsigned(),
    }
}

/// A number in 16 bits, cut off; beyond its range, the nearest in it.
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
    use super::{assumed, bits};

    #[test]
    fn values_have_the_bytes_of_their_type() {
        assert_eq!(bits(6, 0.75), 0x3f40_0000);
        assert_eq!(bits(15, 0.75), 0x3f40);
        assert_eq!(bits(5, 0.75), 0x3a00);
        assert_eq!(bits(5, 1e9), 0x7bff);
        assert_eq!(bits(4, -1.0), u64::MAX);
        assert_eq!((bits(11, 2.0), bits(11, 0.0)), (1, 0));
        assert!(assumed(6, 2) < assumed(6, 1) && assumed(6, 1 << 40) >= 0.5);
    }
}
