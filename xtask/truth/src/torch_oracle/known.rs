//! Differences without a mark whose cause is known (`known.txt`), each with how often it may occur.

use anyhow::{Context as _, Result, bail};

use super::report::OperatorDifference;

const KNOWN: &str = include_str!("known.txt");

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCause {
    /// The operator and the circumstance, as the report has them.
    pub operator: String,
    /// How the calls differ, as the report has it.
    pub cause: String,
    /// The most calls of a million that may differ for this cause.
    pub of_a_million: usize,
    /// Why the calls differ, in a sentence.
    pub reason: String,
}

/// The list that the repository has.
///
/// # Errors
///
/// A line that is not understood.
pub fn known_causes() -> Result<Vec<KnownCause>> {
    read(KNOWN)
}

fn read(text: &str) -> Result<Vec<KnownCause>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse(line).with_context(|| line.to_owned())).collect()
}

fn parse(line: &str) -> Result<KnownCause> {
    let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
    let [operator, cause, most, reason] = parts[..] else {
        bail!("a line has an operator, how its calls differ, the most calls of a million, and the reason")
    };
    let of_a_million = most.parse().context("the most calls of a million is a number")?;
    Ok(KnownCause {
        operator: operator.to_owned(),
        cause: cause.to_owned(),
        of_a_million,
        reason: reason.to_owned(),
    })
}

/// The differences that are not known, or that occur more often than allowed: a sentence each. One call of a
/// known cause is always allowed.
pub fn unexpected(differences: &[OperatorDifference], known: &[KnownCause], compared: usize) -> Vec<String> {
    let mut sentences = Vec::new();
    for OperatorDifference { operator, cause, calls } in differences {
        let listed = known.iter().find(|known| known.operator == *operator && known.cause == *cause);
        let Some(listed) = listed else {
            sentences.push(format!("{operator} ({cause}): {calls} calls, no known cause"));
            continue;
        };
        let most = listed.of_a_million.saturating_mul(compared).div_ceil(1_000_000).max(1);
        if *calls > most {
            sentences.push(format!(
                "{operator} ({cause}): {calls} calls of {compared}, at most {most} are known: {}",
                listed.reason
            ));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(operator: &str, calls: usize) -> OperatorDifference {
        OperatorDifference { operator: operator.to_owned(), cause: "another order".to_owned(), calls }
    }

    #[test]
    fn the_list_of_the_repository_is_understood() {
        assert!(known_causes().is_ok(), "{:?}", known_causes());
    }

    #[test]
    fn a_difference_is_expected_if_it_is_known_and_rare() {
        let known = read("# a comment\n\nsum | another order | 2 | a hash table\n");
        let known = known.unwrap_or_default();
        assert_eq!(known.len(), 1);
        assert!(unexpected(&[difference("sum", 3)], &known, 1_500_000).is_empty());
        assert!(unexpected(&[difference("sum", 1)], &known, 100).is_empty());
        assert_eq!(unexpected(&[difference("sum", 4)], &known, 1_500_000).len(), 1);
        assert_eq!(unexpected(&[difference("mean", 1)], &known, 1_500_000).len(), 1);
    }

    #[test]
    fn a_line_without_a_reason_is_an_error() {
        assert!(read("sum | another order | 2").is_err());
        assert!(read("sum | another order | often | a hash table").is_err());
    }
}
