//! The largest value under each of several conditions (values of another option, settings, layouts): one search
//! for each, which begins where the earlier searches lead.

use blockyard_record::Bytes;

use crate::{Guess, Probe, SearchOutcome, Values, search, search_from};

/// The search under one of the conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionsSearch<T, E> {
    /// The conditions.
    pub conditions: T,
    /// The result of the search.
    pub found: SearchOutcome<E>,
}

/// Searches the largest value: from a [`guess`], if earlier searches allow one. The search under the conditions
/// proves each answer by probes, as in [`search`].
pub fn search_guessed<E>(
    values: &Values,
    limit: Bytes,
    guess: Option<Guess>,
    probe: impl FnMut(u64) -> Result<Probe, E>,
) -> SearchOutcome<E> {
    match guess {
        Some(guess) => search_from(values, guess, probe),
        None => search(values, limit, probe),
    }
}

/// A guess of the answer under conditions of a size, from the probes of earlier searches.
///
/// The guess assumes that the peak reserved is a base, which no size changes, and a number of bytes for each
/// unit of the value. This number is assumed to grow with the size as it grew between the last two sizes, or
/// in proportion to the size if one size is known. The limit is the limit under which a value did not fit in
/// the last search. The guess is the lowest value if no value fitted in the last search; `None` if nothing is
/// known.
#[must_use]
pub fn guess(
    values: &Values,
    limit: Bytes,
    before: &[(Option<u64>, &[Probe])],
    size: Option<u64>,
) -> Option<Guess> {
    let (_, last) = before.last()?;
    if !last.is_empty() && last.iter().all(|probe| !probe.fits) {
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
    let largest = last.iter().filter(|probe| probe.fits).max_by_key(|probe| probe.value)?;
    let has_failed = last.iter().any(|probe| !probe.fits);
    let limit = if has_failed { largest.peak_reserved.min(limit) } else { limit };
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
        value: whole((as_float(limit.get()) - line.base) / slope),
        lowest: Some(Bytes::new(whole(line.base + slope * as_float(values.low())))),
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
    let fits = || probes.iter().filter(|probe| probe.fits);
    let low = fits().min_by_key(|probe| probe.value)?;
    let high = fits().max_by_key(|probe| probe.value)?;
    let most = as_float(high.peak_reserved.get());
    if high.value == low.value {
        let base = base.filter(|base| *base <= most && high.value > 0)?;
        return Some(Line { base, slope: (most - base) / as_float(high.value) });
    }
    let rise = most - as_float(low.peak_reserved.get());
    let slope = rise / (as_float(high.value) - as_float(low.value));
    Some(Line { base: (as_float(low.peak_reserved.get()) - slope * as_float(low.value)).max(0.0), slope })
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a device are below 2^53, and a guess may be wrong")]
fn as_float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cut off, 0 for negative numbers"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut columns: Vec<ConditionsSearch<u64, ()>> = Vec::new();
        for length in &lengths {
            let before: Vec<(Option<u64>, &[Probe])> = columns
                .iter()
                .map(|column| (Some(column.conditions), column.found.probes.as_slice()))
                .collect();
            let ask = |batch| Ok::<_, ()>(probe(*length, batch, limit));
            let found = search_guessed(&values, limit, guess(&values, limit, &before, Some(*length)), ask);
            columns.push(ConditionsSearch { conditions: *length, found });
        }
        assert_eq!(columns.len(), lengths.len());
        for column in &columns {
            let most = values.iter().filter(|batch| bytes(column.conditions, *batch) <= limit).max();
            assert_eq!(column.found.largest(&values), most, "{}", column.conditions);
        }
        let with: usize = columns.iter().skip(1).map(|column| column.found.probes.len()).sum();
        let alone = |length: u64| search(&values, limit, |batch| Ok::<_, ()>(probe(length, batch, limit)));
        let without: usize = lengths.iter().skip(1).map(|length| alone(*length).probes.len()).sum();
        assert!(4 * with < 3 * without, "{with} probes, {without} without guesses");
    }

    #[test]
    fn nothing_fits_and_a_probe_fails() {
        let values: Values = "1..64".parse().unwrap();
        let limit = Bytes::new(10);
        let none = |batch| Ok::<_, ()>(Probe::of(batch, false, Bytes::ZERO, Bytes::ZERO));
        let first = search_guessed(&values, limit, None, none);
        let led = guess(&values, limit, &[(None, &first.probes)], None);
        let second = search_guessed(&values, limit, led, none);
        assert_eq!((first.probes.len(), second.probes.len()), (1, 1));
        let ended = search_guessed(&values, limit, led, |_batch| Err("no such file"));
        assert_eq!((ended.largest(&values), ended.failure), (None, Some((1, "no such file"))));
    }
}
