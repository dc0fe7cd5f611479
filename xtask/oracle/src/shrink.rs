//! Shrinks a sequence that fails.

use anyhow::Result;
use blockyard_record::Bytes;
use blockyard_rules::AllocatorConfig;

use crate::rules::restricted;
use crate::sequence::{Operation, Sequence};

/// The smallest sequence that was found and still `fails`: without operations, settings and bytes that do not
/// matter.
///
/// # Errors
///
/// The errors of `fails`.
pub fn shrink(sequence: &Sequence, mut fails: impl FnMut(&Sequence) -> Result<bool>) -> Result<Sequence> {
    let mut best = sequence.clone();
    loop {
        let before = best.clone();
        without_operations(&mut best, &mut fails)?;
        without_settings(&mut best, &mut fails)?;
        with_rounder_sizes(&mut best, &mut fails)?;
        if best == before {
            return Ok(best);
        }
    }
}

/// Leaves out runs of operations, the longest runs first.
fn without_operations(best: &mut Sequence, fails: &mut impl FnMut(&Sequence) -> Result<bool>) -> Result<()> {
    let mut length = best.operations.len().div_ceil(2);
    while length > 0 {
        let mut end = best.operations.len();
        while end > 0 {
            let start = end.saturating_sub(length);
            let kept = [&best.operations[..start], &best.operations[end..]].concat();
            let candidate = restricted(&best.with(kept));
            if fails(&candidate)? {
                // Operations that depended on the removed ones may be removed too.
                end = start.min(candidate.operations.len());
                *best = candidate;
            } else {
                end = start;
            }
        }
        length /= 2;
    }
    Ok(())
}

fn without_settings(best: &mut Sequence, fails: &mut impl FnMut(&Sequence) -> Result<bool>) -> Result<()> {
    let options = split_options(&best.conf);
    for left_out in options {
        let kept: Vec<String> =
            split_options(&best.conf).into_iter().filter(|option| *option != left_out).collect();
        let conf = kept.join(",");
        // The lower bounds of some settings depend on another.
        if AllocatorConfig::parse(&conf, best.release).is_err() {
            continue;
        }
        let candidate = restricted(&Sequence { conf, ..best.clone() });
        if fails(&candidate)? {
            *best = candidate;
        }
    }
    Ok(())
}

/// The `key:value` pairs of a settings text, whose lists have commas too.
fn split_options(text: &str) -> Vec<String> {
    let mut options = Vec::new();
    let mut depth = 0;
    let mut option = String::new();
    for letter in text.chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                options.push(std::mem::take(&mut option));
                continue;
            }
            _ => {}
        }
        option.push(letter);
    }
    options.push(option);
    options.retain(|option| !option.is_empty());
    options
}

fn with_rounder_sizes(best: &mut Sequence, fails: &mut impl FnMut(&Sequence) -> Result<bool>) -> Result<()> {
    const MIB: u64 = 1 << 20;
    let rounder = |size: u64| [size / MIB * MIB, size.next_multiple_of(MIB), size / 512 * 512];
    for capacity in rounder(best.capacity.get()) {
        let candidate = Sequence { capacity: Bytes::new(capacity), ..best.clone() };
        if candidate != *best && fails(&candidate)? {
            *best = candidate;
        }
    }
    for index in 0..best.operations.len() {
        let Operation::Allocate { tensor, size, stream } = best.operations[index] else {
            continue;
        };
        if size.get() >= 1 << 60 {
            continue;
        }
        for rounded in rounder(size.get()).into_iter().filter(|rounded| *rounded > 0) {
            let mut candidate = best.clone();
            candidate.operations[index] = Operation::Allocate { tensor, size: Bytes::new(rounded), stream };
            if candidate != *best && fails(&candidate)? {
                *best = candidate;
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use blockyard_record::StreamId;
    use blockyard_rules::Release;

    use super::*;

    #[test]
    fn only_what_makes_it_fail_is_left() {
        let allocate =
            |tensor, size| Operation::Allocate { tensor, size: Bytes::new(size), stream: StreamId::DEFAULT };
        let mut operations: Vec<Operation> = (0..40).map(|tensor| allocate(tensor, 1000)).collect();
        operations.insert(20, allocate(77, 5 << 20));
        operations.insert(30, Operation::Free { tensor: 77 });
        let conf = "roundup_power2_divisions:[1:2,>:4],expandable_segments:True".to_owned();
        let sequence = restricted(&Sequence {
            release: Release::V2_11,
            capacity: Bytes::new(1 << 30),
            conf,
            operations,
        });
        let small = shrink(&sequence, |candidate| {
            let sizes = candidate.operations.iter().map(|operation| match operation {
                Operation::Allocate { tensor, size, .. } => (*tensor, size.get()),
                _ => (0, 0),
            });
            let large: Vec<_> = sizes.filter(|(_, size)| *size > 4 << 20).collect();
            let is_freed = large
                .iter()
                .any(|(tensor, _)| candidate.operations.contains(&Operation::Free { tensor: *tensor }));
            Ok(is_freed && candidate.conf.contains(">:4"))
        })
        .unwrap();
        assert_eq!(small.operations, [allocate(0, 5 << 20), Operation::Free { tensor: 0 }]);
        assert_eq!(small.conf, "roundup_power2_divisions:[1:2,>:4]");
    }
}
