//! A guess of the largest value under one of several conditions (values of another option, settings,
//! layouts), from the searches under the others.

use blockyard_record::Bytes;

use crate::growth::as_float;
use crate::{Guess, Probe, Values};

/// A guess of the answer under conditions of a size, from the probes of earlier searches.
///
/// The guess assumes that the peak reserved is a base, which no size changes, and a number of bytes for each
/// unit of the value. This number is assumed to grow with the size as it grew between the last two sizes, or
/// in proportion to the size if one size is known. The limit is the limit under which a value did not fit in
/// the last search. The guess is the lowest value if no value fitted in the last search; `None` if nothing is
/// known.
pub fn guess(
    values: &Values,
    limit: Bytes,
    before: &[(Option<u64>, &[Probe])],
    size: Option<u64>,
) -> Option<Guess> {
    let (_, last) = before.last()?;
    if !last.is_empty() && last.iter().all(|probe| !probe.run.fits) {
        return Some(Guess { value: values.low(), lowest: None, limit });
    }
    let mut lines: Vec<(Option<u64>, Line)> = Vec::new();
    for (size, probes) in before {
        let base = lines.last().map(|(_, line)| line.base);
        if let Some(line) = line_of(probes, base) {
            lines.push((*size, line));
        }
    }
    let (last_size, line) = *lines.last()?;
    let largest = last.iter().filter(|probe| probe.run.fits).max_by_key(|probe| probe.value)?;
    let has_failed = last.iter().any(|probe| !probe.run.fits);
    let limit = if has_failed { largest.peak_reserved().min(limit) } else { limit };
    let by_size = lines.iter().rev().filter_map(|(size, line)| {
        let size = as_float(size.filter(|size| *size > 0)?);
        Some((size, line.slope / size))
    });
    // The slope for each unit of size, of the last two sizes.
    let by_size: Vec<(f64, f64)> = by_size.take(2).collect();
    let slope = match (last_size.and(size).map(as_float), by_size.as_slice()) {
        (Some(size), [(last, slope), (before, earlier), ..]) if last > before => {
            size * (slope + (slope - earlier) / (last - before) * (size - last))
        }
        (Some(size), [(_, slope), ..]) => slope * size,
        _ => line.slope,
    };
    if !slope.is_finite() || slope <= 0.0 {
        return Some(Guess { value: largest.value, lowest: None, limit });
    }
    Some(Guess {
        value: cut_off((as_float(limit.get()) - line.base) / slope),
        lowest: Some(Bytes::new(cut_off(line.base + slope * as_float(values.low())))),
        limit,
    })
}

/// Bytes reserved: `base + slope * value`.
#[derive(Clone, Copy)]
struct Line {
    base: f64,
    slope: f64,
}

/// The line through the lowest and the highest value that fit; if a single value fits, the line through that
/// value from a known base.
fn line_of(probes: &[Probe], base: Option<f64>) -> Option<Line> {
    let fits = || probes.iter().filter(|probe| probe.run.fits);
    let low = fits().min_by_key(|probe| probe.value)?;
    let high = fits().max_by_key(|probe| probe.value)?;
    let most = as_float(high.peak_reserved().get());
    if high.value == low.value {
        let base = base.filter(|base| *base <= most && high.value > 0)?;
        return Some(Line { base, slope: (most - base) / as_float(high.value) });
    }
    let rise = most - as_float(low.peak_reserved().get());
    let slope = rise / (as_float(high.value) - as_float(low.value));
    Some(Line { base: (as_float(low.peak_reserved().get()) - slope * as_float(low.value)).max(0.0), slope })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cut off, 0 for negative numbers"
)]
fn cut_off(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SearchOutcome, search, search_from};

    /// The bytes that a batch of sequences of a length takes: weights, activations, and scores of attention.
    fn bytes(length: u64, batch: u64) -> Bytes {
        Bytes::new(1_000_000 + batch * (20 * length + length * length / 100))
    }

    fn probe(length: u64, batch: u64, limit: Bytes) -> Probe {
        let bytes = bytes(length, batch);
        Probe::of(batch, bytes <= limit, bytes.min(limit), bytes.min(limit))
    }

    #[test]
    fn each_search_begins_where_the_one_before_leads() {
        let limit = Bytes::new(8_000_000);
        let (values, lengths): (Values, Values) =
            ("1..4096".parse().unwrap(), "128..1024:128".parse().unwrap());
        let lengths: Vec<u64> = lengths.iter().collect();
        let mut columns: Vec<(u64, SearchOutcome<()>)> = Vec::new();
        for length in &lengths {
            let before: Vec<(Option<u64>, &[Probe])> =
                columns.iter().map(|(length, found)| (Some(*length), found.probes.as_slice())).collect();
            let ask = |batch| Ok::<_, ()>(probe(*length, batch, limit));
            let found = search_from(&values, limit, guess(&values, limit, &before, Some(*length)), ask);
            columns.push((*length, found));
        }
        assert_eq!(columns.len(), lengths.len());
        for (length, found) in &columns {
            let most = values.iter().filter(|batch| bytes(*length, *batch) <= limit).max();
            assert_eq!(found.largest(&values), most, "{length}");
        }
        let with: usize = columns.iter().skip(1).map(|(_, found)| found.probes.len()).sum();
        let alone = |length: u64| search(&values, limit, |batch| Ok::<_, ()>(probe(length, batch, limit)));
        let without: usize = lengths.iter().skip(1).map(|length| alone(*length).probes.len()).sum();
        assert!(4 * with < 3 * without, "{with} probes, {without} without guesses");
    }

    #[test]
    fn nothing_fits_and_a_probe_fails() {
        let values: Values = "1..64".parse().unwrap();
        let limit = Bytes::new(10);
        let none = |batch| Ok::<_, ()>(Probe::of(batch, false, Bytes::ZERO, Bytes::ZERO));
        let first = search_from(&values, limit, None, none);
        let led = guess(&values, limit, &[(None, &first.probes)], None);
        let second = search_from(&values, limit, led, none);
        assert_eq!((first.probes.len(), second.probes.len()), (1, 1));
        let ended = search_from(&values, limit, led, |_batch| Err("no such file"));
        assert_eq!((ended.largest(&values), ended.failure), (None, Some((1, "no such file"))));
    }
}
