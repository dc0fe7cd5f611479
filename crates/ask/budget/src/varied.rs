//! The numbers in the text of a program that a search may vary: options and constants.

use std::ops::Range;

/// The names that say how large a batch is, as [`normal`] writes them.
const BATCH_NAMES: [&str; 8] = [
    "batch",
    "batch-size",
    "batchsize",
    "bs",
    "micro-batch-size",
    "minibatch-size",
    "per-device-train-batch-size",
    "train-batch-size",
];

/// A whole number that a program takes from an option or from a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariedNumber {
    /// The option, or the name of the constant, as the program writes it: `--batch-size`, `batch_size`.
    pub name: String,
    /// The number.
    pub value: u64,
    /// The place of a constant's value in the text; `None` for an option.
    digits: Option<Range<usize>>,
}

impl VariedNumber {
    /// The numbers of a program that gets these arguments: the options of `argparse` with a whole number, and
    /// then lines `batch_size = 64` at the left margin. The size of the batch is the first, where it has one
    /// of the usual names.
    pub fn all(text: &str, arguments: &str) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let found = || options(text).filter_map(|call| option(call, arguments)).chain(constants(text));
        for is_batch in [true, false] {
            for number in found().filter(|number| number.value > 0 && number.is_batch() == is_batch) {
                if all.iter().all(|known| known.name != number.name) {
                    all.push(number);
                }
            }
        }
        all
    }

    /// Whether the name says that the number is the size of the batch.
    pub fn is_batch(&self) -> bool {
        BATCH_NAMES.contains(&normal(&self.name).as_str())
    }

    /// Whether the number is an option's, which `blockyard fit` can vary.
    pub fn is_option(&self) -> bool {
        self.digits.is_none()
    }

    /// The text and the arguments of the program with another number.
    pub fn with(&self, text: &str, arguments: &str, value: u64) -> (String, String) {
        if let Some(digits) = &self.digits {
            let (before, after) = (text.get(..digits.start), text.get(digits.end..));
            let text = format!("{}{value}{}", before.unwrap_or_default(), after.unwrap_or_default());
            return (text, arguments.to_owned());
        }
        let rest = remove_option(arguments, &self.name);
        (text.to_owned(), format!("{rest} {} {value}", self.name).trim_start().to_owned())
    }
}

/// Whether a program has an option `--amp` without a value that its arguments do not give.
pub fn may_take_amp(text: &str, arguments: &str) -> bool {
    let has_option =
        options(text).any(|call| quoted(call).any(|name| name == "--amp") && call.contains("store_true"));
    has_option && !arguments.split_whitespace().any(|word| word == "--amp")
}

/// A name of an option or constant as [`BATCH_NAMES`] has it.
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

/// The number that an option of a call of `add_argument` has: its value among the arguments, or else its
/// default.
fn option(call: &str, arguments: &str) -> Option<VariedNumber> {
    let name = quoted(call).find(|name| name.starts_with("--"))?;
    let default = || number(call.split_once("default=")?.1);
    let value = option_value(arguments, name).or_else(default)?;
    Some(VariedNumber { name: name.to_owned(), value, digits: None })
}

/// The whole number at the beginning of a text, which may go on with another argument.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '_').unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    let is_whole = rest.trim_start().is_empty() || rest.trim_start().starts_with([',', ')', '#']);
    digits.replace('_', "").parse().ok().filter(|_| is_whole)
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

/// The numbers of lines `batch_size = 64` and `BATCH, TOKENS = 32, 256` at the left margin, perhaps with a
/// comment after them. The size of the batch may be anywhere.
fn constants(text: &str) -> impl Iterator<Item = VariedNumber> + '_ {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        (at, line)
    });
    lines.flat_map(|(at, line)| constants_of_line(at, line).unwrap_or_default())
}

/// The numbers that a line which begins at this place of the text gives to names; `None` for other lines.
fn constants_of_line(line_at: usize, line: &str) -> Option<Vec<VariedNumber>> {
    let (names, values) = line.split_once('=')?;
    let mut at = line_at + names.len() + 1;
    let is_at_margin = !line.starts_with([' ', '\t']);
    let names: Vec<&str> = names.split(':').next()?.split(',').map(str::trim).collect();
    let values: Vec<&str> = values.split('#').next()?.split(',').collect();
    let mut found = Vec::new();
    for (name, value) in names.iter().zip(&values) {
        let digits = value.trim();
        let is_number = digits.bytes().all(|letter| letter.is_ascii_digit() || letter == b'_');
        let value_at = at + value.find(digits)?;
        at += value.len() + 1;
        let place = value_at..value_at + digits.len();
        let value = number(digits).filter(|_| is_number)?;
        found.push(VariedNumber { name: (*name).to_owned(), value, digits: Some(place) });
    }
    let is_name = |name: &str| name.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_');
    found.retain(|number| is_name(&number.name) && (is_at_margin || number.is_batch()));
    Some(found).filter(|_| names.len() == values.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('-b', '--batch_size', type=int, default=64)\n\
                           parser.add_argument(\"--amp\", action=\"store_true\")\nbatch_size = args.batch_size\n";

    fn first(text: &str, arguments: &str) -> Option<VariedNumber> {
        VariedNumber::all(text, arguments).into_iter().next()
    }

    #[test]
    fn an_option_is_found_with_its_value_and_given_another() {
        let found = first(PROGRAM, "").unwrap();
        assert_eq!((found.name.as_str(), found.value), ("--batch_size", 64));
        assert_eq!(found.with(PROGRAM, "--steps 2", 8).1, "--steps 2 --batch_size 8");
        let given = first(PROGRAM, "--batch_size 32 --steps 2").unwrap();
        assert_eq!(given.value, 32);
        let (text, arguments) = given.with(PROGRAM, "--batch_size 32 --steps 2", 8);
        assert_eq!((text.as_str(), arguments.as_str()), (PROGRAM, "--steps 2 --batch_size 8"));
        assert_eq!(first(PROGRAM, "--batch_size=16").unwrap().value, 16);
        assert!(may_take_amp(PROGRAM, "") && !may_take_amp(PROGRAM, "--amp") && !may_take_amp("--amp", ""));
        // An option whose size is not known is none that can be made smaller.
        assert_eq!(first("parser.add_argument('--batch', required=True)", ""), None);
    }

    #[test]
    fn a_constant_is_found_and_replaced_in_place() {
        let program =
            "import torch\n\nsteps = 3\nBATCH_SIZE: int = 1_024  # images\nx = torch.ones(BATCH_SIZE, 64)\n";
        let found = first(program, "").unwrap();
        assert_eq!((found.name.as_str(), found.value), ("BATCH_SIZE", 1024));
        assert_eq!(found.with(program, "--x", 12), (program.replace("1_024", "12"), "--x".to_owned()));
        for text in ["batch = data.next()", "batch == 64", "batch_size = 2 * 8", "f(batch=8)", "  width = 8"]
        {
            assert_eq!(first(text, ""), None, "{text}");
        }
        assert_eq!(first("batch = 1\n", "").unwrap().with("batch = 1\n", "", 7).0, "batch = 7\n");
    }

    #[test]
    fn all_whole_numbers_are_found_and_the_batch_is_the_first() {
        let program = "parser.add_argument('--lr', type=float, default=0.1)\n\
                       parser.add_argument('--width', type=int, default=512, help='of a layer')\n\
                       LAYERS, BATCH = 6, 1_000  # small\nrate = 3e-4\nfor step in range(9):\n    kept = 3\n";
        let all = VariedNumber::all(program, "");
        let names: Vec<(&str, u64)> = all.iter().map(|found| (found.name.as_str(), found.value)).collect();
        assert_eq!(names, [("BATCH", 1000), ("--width", 512), ("LAYERS", 6)]);
        assert_eq!(all[0].with(program, "", 7).0, program.replace("1_000", "7"));
        assert_eq!(all[2].with(program, "", 12).0, program.replace("= 6,", "= 12,"));
        assert!(all[1].is_option() && !all[2].is_option());
    }
}
