//! The place at which the text of a program says how large its batch is, and the search for the largest
//! batch, value by value.

use blockyard_record::Bytes;

use crate::{Probe, SearchOutcome, Values, search};

/// The names of options and of constants, as [`normal`] writes them.
const NAMES: [&str; 8] = [
    "batch",
    "batch-size",
    "batchsize",
    "bs",
    "micro-batch-size",
    "minibatch-size",
    "per-device-train-batch-size",
    "train-batch-size",
];

/// The place at which a program says how large its batch is: an option or a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSize {
    /// The option, or the name of the constant, as the program writes it: `--batch-size`, `batch_size`.
    pub name: String,
    /// The size.
    pub value: u64,
    /// The place of a constant's value in the text; `None` for an option.
    digits: Option<std::ops::Range<usize>>,
}

impl BatchSize {
    /// The batch size of a program that gets these arguments: an option of `argparse`, or else a line
    /// `batch_size = 64`.
    #[must_use]
    pub fn of(text: &str, arguments: &str) -> Option<Self> {
        option(text, arguments).or_else(|| constant(text))
    }

    /// The text and the arguments of the program with a batch of this size.
    #[must_use]
    pub fn with(&self, text: &str, arguments: &str, size: u64) -> (String, String) {
        if let Some(digits) = &self.digits {
            let (before, after) = (text.get(..digits.start), text.get(digits.end..));
            let text = format!("{}{size}{}", before.unwrap_or_default(), after.unwrap_or_default());
            return (text, arguments.to_owned());
        }
        let rest = remove_option(arguments, &self.name);
        (text.to_owned(), format!("{rest} {} {size}", self.name).trim_start().to_owned())
    }
}

/// Whether a program has an option `--amp` without a value that its arguments do not give.
#[must_use]
pub fn may_take_amp(text: &str, arguments: &str) -> bool {
    let has_option =
        options(text).any(|call| quoted(call).any(|name| name == "--amp") && call.contains("store_true"));
    has_option && !arguments.split_whitespace().any(|word| word == "--amp")
}

/// The next step of a search for the largest batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchStep {
    /// Run the program with this size.
    Try(u64),
    /// The probe of the largest size that fits; `None` where not even the size 1 does.
    Found(Option<Box<Probe>>),
}

/// The next step of a search below a size that does not fit, after these probes: sizes are halved until a
/// size fits, and then the search continues between the last two sizes. `limit` is the most bytes that may be
/// reserved.
#[must_use]
pub fn next_batch(too_large: u64, limit: Bytes, probes: &[Probe]) -> BatchStep {
    let known = |size: u64| probes.iter().find(|probe| probe.value == size);
    let mut high = too_large;
    let low = loop {
        let half = high / 2;
        match known(half) {
            _ if half == 0 => return BatchStep::Found(None),
            None => return BatchStep::Try(half),
            Some(probe) if probe.run.fits => break half,
            Some(_) => high = half,
        }
    };
    let Ok(values) = format!("{low}..{high}").parse::<Values>() else { return BatchStep::Found(None) };
    let found: SearchOutcome<()> = search(&values, limit, |size| match known(size) {
        Some(probe) => Ok(probe.clone()),
        None if size == high => Ok(Probe::of(size, false, limit, limit)),
        None => Err(()),
    });
    match found.failure {
        Some((size, ())) => BatchStep::Try(size),
        None => BatchStep::Found(found.largest_fitting().cloned().map(Box::new)),
    }
}

/// A name of an option or constant as [`NAMES`] has it.
fn normal(name: &str) -> String {
    name.trim_start_matches('-').replace('_', "-").to_lowercase()
}

/// The arguments of each call of `add_argument`.
fn options(text: &str) -> impl Iterator<Item = &str> {
    text.split("add_argument(").skip(1).map(|rest| {
        let mut depth = 1_usize;
        let end = rest.find(|letter| {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        end.and_then(|end| rest.get(..end)).unwrap_or(rest)
    })
}

/// The texts between quotation marks.
fn quoted(call: &str) -> impl Iterator<Item = &str> {
    call.split(['"', '\'']).skip(1).step_by(2)
}

fn option(text: &str, arguments: &str) -> Option<BatchSize> {
    options(text).find_map(|call| {
        let mut names = quoted(call).filter(|name| name.starts_with('-'));
        let name = names.find(|name| name.starts_with("--") && NAMES.contains(&normal(name).as_str()))?;
        let default = || number(call.split_once("default=")?.1);
        let value = option_value(arguments, name).or_else(default)?;
        Some(BatchSize { name: name.to_owned(), value, digits: None })
    })
}

/// The number at the beginning of a text.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '_').unwrap_or(text.len());
    text.get(..end)?.replace('_', "").parse().ok()
}

/// The last value of an option among arguments.
fn option_value(arguments: &str, name: &str) -> Option<u64> {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let value = |index: usize| {
        let word = words.get(index)?;
        match word.strip_prefix(name)? {
            "" => words.get(index + 1).copied(),
            rest => rest.strip_prefix('='),
        }
    };
    (0..words.len()).rev().find_map(value)?.parse().ok()
}

/// The arguments without an option and its value. Where words are quoted they stay as they are, since the
/// last of two options counts.
fn remove_option(arguments: &str, name: &str) -> String {
    if arguments.contains(['"', '\'', '\\']) {
        return arguments.to_owned();
    }
    let mut kept = Vec::new();
    let mut words = arguments.split_whitespace();
    while let Some(word) = words.next() {
        match word.strip_prefix(name) {
            Some("") => {
                words.next();
            }
            Some(rest) if rest.starts_with('=') => {}
            _ => kept.push(word),
        }
    }
    kept.join(" ")
}

/// The first line that is `batch_size = 64`, perhaps with a comment after the value.
fn constant(text: &str) -> Option<BatchSize> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let at = start;
        start += line.len();
        let Some((name, rest)) = line.split_once('=') else { continue };
        let name = name.split(':').next().unwrap_or_default().trim();
        let value = rest.split('#').next().unwrap_or_default().trim();
        let is_number =
            !value.is_empty() && value.bytes().all(|letter| letter.is_ascii_digit() || letter == b'_');
        if !NAMES.contains(&normal(name).as_str()) || !is_number {
            continue;
        }
        let Some(index) = line.rfind(rest).and_then(|rest_at| Some(rest_at + rest.find(value)?)) else {
            continue;
        };
        let value_at = at + index;
        let digits = value_at..value_at + value.len();
        return Some(BatchSize { name: name.to_owned(), value: number(value)?, digits: Some(digits) });
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROGRAM: &str = "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('-b', '--batch_size', type=int, default=64)\n\
                           parser.add_argument(\"--amp\", action=\"store_true\")\nbatch_size = args.batch_size\n";

    #[test]
    fn an_option_is_found_with_its_value_and_given_another() {
        let found = BatchSize::of(PROGRAM, "").unwrap();
        assert_eq!((found.name.as_str(), found.value), ("--batch_size", 64));
        assert_eq!(found.with(PROGRAM, "--steps 2", 8).1, "--steps 2 --batch_size 8");
        let given = BatchSize::of(PROGRAM, "--batch_size 32 --steps 2").unwrap();
        assert_eq!(given.value, 32);
        let (text, arguments) = given.with(PROGRAM, "--batch_size 32 --steps 2", 8);
        assert_eq!((text.as_str(), arguments.as_str()), (PROGRAM, "--steps 2 --batch_size 8"));
        assert_eq!(BatchSize::of(PROGRAM, "--batch_size=16").unwrap().value, 16);
        assert!(may_take_amp(PROGRAM, "") && !may_take_amp(PROGRAM, "--amp") && !may_take_amp("--amp", ""));
        // An option whose size is not known is none that can be made smaller.
        assert_eq!(BatchSize::of("parser.add_argument('--batch', required=True)", ""), None);
    }

    #[test]
    fn a_constant_is_found_and_replaced_in_place() {
        let program =
            "import torch\n\nsteps = 3\nBATCH_SIZE: int = 1_024  # images\nx = torch.ones(BATCH_SIZE, 64)\n";
        let found = BatchSize::of(program, "").unwrap();
        assert_eq!((found.name.as_str(), found.value), ("BATCH_SIZE", 1024));
        assert_eq!(found.with(program, "--x", 12), (program.replace("1_024", "12"), "--x".to_owned()));
        for text in ["batch = data.next()", "batch == 64", "batch_size = 2 * 8", "f(batch=8)", "mybatch = 8"]
        {
            assert_eq!(BatchSize::of(text, ""), None, "{text}");
        }
        assert_eq!(BatchSize::of("batch = 1\n", "").unwrap().with("batch = 1\n", "", 7).0, "batch = 7\n");
    }

    proptest! {
        #[test]
        fn the_largest_batch_is_found_in_few_runs(too_large in 1_u64..5000, base in 0_u64..1000, slope in 1_u64..50, limit in 0_u64..60_000) {
            let bytes = |size: u64| base + slope * size;
            prop_assume!(bytes(too_large) > limit);
            let mut probes: Vec<Probe> = Vec::new();
            let found = loop {
                match next_batch(too_large, Bytes::new(limit), &probes) {
                    BatchStep::Try(size) => {
                        prop_assert!(size < too_large && probes.iter().all(|probe| probe.value != size));
                        let peak = Bytes::new(bytes(size).min(limit));
                        probes.push(Probe::of(size, bytes(size) <= limit, peak, peak));
                    }
                    BatchStep::Found(found) => break found,
                }
            };
            let largest = (1..too_large).filter(|size| bytes(*size) <= limit).max();
            prop_assert_eq!(found.map(|probe| probe.value), largest);
            prop_assert!(probes.len() <= 24, "{} runs", probes.len());
        }
    }
}
