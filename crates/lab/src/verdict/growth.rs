//! The sentences of a verdict about what grows.

use blockyard_record::{Bytes, frame_words, grouped, own_line};

use super::{About, Finding, Moments};
use crate::leaks::Steps;
use crate::{Growth, Leaks};

/// The sentences about one line of the program that grows.
pub(super) struct LineGrowth {
    pub(super) line: String,
    bytes: Bytes,
    allocations: u64,
    /// The first request that is part of the growth; 0 where none is.
    first_request: u64,
    last_request: u64,
}

/// How many lines that grow a verdict names.
const SHOWN: usize = 4;

/// The lines of the program that grow, those first that grow most.
pub(super) fn by_line(growing: &[Growth]) -> Vec<LineGrowth> {
    let mut lines: Vec<LineGrowth> = Vec::new();
    for growth in growing {
        let line = own_line(&growth.site).map_or_else(|| "no stack was recorded".to_owned(), frame_words);
        match lines.iter_mut().find(|known| known.line == line) {
            Some(known) => {
                known.bytes = known.bytes.saturating_add(growth.growth);
                known.allocations = known.allocations.saturating_add(growth.allocations);
                known.first_request = match (known.first_request, growth.first_request) {
                    (0, first) | (first, 0) => first,
                    (one, other) => one.min(other),
                };
                known.last_request = known.last_request.max(growth.last_request);
            }
            None => lines.push(LineGrowth {
                line,
                bytes: growth.growth,
                allocations: growth.allocations,
                first_request: growth.first_request,
                last_request: growth.last_request,
            }),
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
    lines
}

/// Over how many steps growth was looked at: the first one sets the program up.
pub(super) fn steps(grows: &Leaks) -> u64 {
    (grows.boundaries.len() as u64).saturating_sub(1)
}

pub(super) fn growth_findings(moments: &Moments, lines: &[LineGrowth], grows: &Leaks) -> Vec<Finding> {
    let steps = steps(grows);
    let over = match grows.steps {
        Steps::Markers => format!("over {} that the recording marks", count_of(steps, "step")),
        Steps::Repetition if grows.are_steps_known => format!("over {} that repeat", count_of(steps, "step")),
        Steps::Repetition => format!(
            "over {} of the same requests, which may be steps or equal layers of a network",
            count_of(steps, "repetition")
        ),
        // Parts of as many requests: what is set up over several of them would be said to grow.
        Steps::Parts => return Vec::new(),
    };
    let shown = lines.iter().take(SHOWN).map(|line| {
        let tensors = count_of(line.allocations, "tensor");
        let text = match line.allocations {
            0 => format!("`{}` holds {} more at the end, {over}", line.line, line.bytes),
            _ => format!("`{}` holds {} more at the end in {tensors} more, {over}", line.line, line.bytes),
        };
        let moments = moments.of_growth(grows, line.first_request, line.last_request);
        let named = Some(line.line.clone());
        Finding { line: named, moments, ..Finding::about(About::Grows, text, Some(line.last_request)) }
    });
    shown.collect()
}

/// `1 step`, `139 steps`.
pub(super) fn count_of(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

pub(super) fn leak_headline(line: &LineGrowth, steps: u64) -> String {
    let each =
        line.allocations.checked_div(steps).filter(|each| each.saturating_mul(steps) == line.allocations);
    let kept = match each.filter(|each| *each > 0) {
        Some(each) => {
            let size = Bytes::new(line.bytes.get().checked_div(line.allocations).unwrap_or(0));
            let of = if size.get().saturating_mul(line.allocations) == line.bytes.get() {
                "of"
            } else {
                "of on average"
            };
            format!("each of {} kept {} {of} {size}", count_of(steps, "step"), count_of(each, "tensor"))
        }
        None => format!(
            "{} kept {}, {} together",
            count_of(steps, "step"),
            count_of(line.allocations, "tensor"),
            line.bytes
        ),
    };
    format!("out of memory by a leak at `{}`: {kept}", line.line)
}
