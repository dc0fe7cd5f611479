//! The sentences of a verdict about what grows.

use blockyard_answers::called_at;
use blockyard_record::{Bytes, counted, frame_text, grouped, own_line};
use serde::{Deserialize, Serialize};

use super::moments::Moments;
use crate::forecast::failing_iteration;
use crate::sites::caller;
use crate::{
    Autopsy, Finding, FindingTopic, Forecast, HoldingLine, IterationSource, Keeper, Leaks, keeper_text,
    shown_keepers,
};

/// The sentences about one line of the program that grows.
pub(super) struct LineGrowth {
    pub(super) line: String,
    /// The callers of the line, by descending growth.
    callers: Vec<String>,
    bytes: Bytes,
    allocations: u64,
    /// Live bytes at each boundary.
    live: Vec<Bytes>,
    /// The first request that is part of the growth, counted from 1; 0 if no request is.
    first_request: u64,
    last_request: u64,
}

impl LineGrowth {
    /// The line between backticks, with its callers.
    fn text(&self) -> String {
        format!("`{}`{}", self.line, called_at(&self.callers, "`"))
    }

    /// The bytes that the line holds at the failure, in two parts that add up: the bytes that iterations
    /// kept, and the rest.
    fn parts(&self, held: Option<Bytes>, what: &str) -> String {
        let tensors = if self.allocations == 0 {
            String::new()
        } else {
            format!(" in {}", counted(self.allocations, "tensor"))
        };
        let how = if self.allocations == 0 { "added in" } else { "kept from" };
        let kept = format!("{}{tensors} {how} {what}s after the first two", self.bytes);
        match held.and_then(|held| Some((held, held.checked_sub(self.bytes)?))) {
            Some((held, rest)) if rest.is_zero() => {
                format!("holds {held} at the failure, all of it {how} {what}s after the first two")
            }
            Some((held, rest)) => format!("holds {held} at the failure: {kept}, and {rest} that do not grow"),
            None => format!("holds more and more: {kept}"),
        }
    }

    /// The number of iterations, among those that are searched for growth, after which the line holds more
    /// than before.
    fn rising_iterations(&self) -> u64 {
        let searched = self.live.get(1..).unwrap_or_default();
        searched.windows(2).filter(|pair| matches!(pair, [one, other] if one < other)).count() as u64
    }

    /// Whether the line holds more because its tensors become larger, and not because it keeps more of them.
    fn has_larger_tensors(&self) -> bool {
        self.allocations == 0
    }

    fn kept(&self, what: &str) -> String {
        growth_text(self.rising_iterations(), what, self.allocations, self.bytes)
    }
}

/// What iterations kept together, in words: `each of 136 iterations kept 3 tensors (4 MiB)`. Without `tensors`
/// the tensors became larger, and not more. `what` is an iteration in a word.
pub fn growth_text(iterations: u64, what: &str, tensors: u64, bytes: Bytes) -> String {
    let each = |all: u64| {
        all.checked_div(iterations).filter(|each| *each > 0 && each.saturating_mul(iterations) == all)
    };
    let all = counted(iterations, what);
    match (each(tensors), each(bytes.get())) {
        (Some(tensors), Some(bytes)) => {
            format!("each of {all} kept {} ({})", counted(tensors, "tensor"), Bytes::new(bytes))
        }
        (None, Some(bytes)) if tensors == 0 => format!("each of {all} added {}", Bytes::new(bytes)),
        _ if tensors == 0 => format!("{all} added {bytes}"),
        _ => format!("{all} kept {}, {bytes} together", counted(tensors, "tensor")),
    }
}

/// How many lines that grow a verdict names.
const SHOWN_LINES: usize = 4;

/// The lines of the program that grow, by descending growth.
pub(super) fn by_line(leaks: &Leaks) -> Vec<LineGrowth> {
    let mut lines: Vec<LineGrowth> = Vec::new();
    for (growth, allocations) in leaks.growing() {
        let line = own_line(&growth.site).map_or_else(|| "no stack was recorded".to_owned(), frame_text);
        let caller = caller(&growth.site);
        match lines.iter_mut().find(|known| known.line == line) {
            Some(known) => {
                known.callers.extend(caller.filter(|caller| !known.callers.contains(caller)));
                known.bytes = known.bytes.saturating_add(growth.growth);
                known.allocations = known.allocations.saturating_add(allocations);
                known.first_request = match (known.first_request, growth.first_request) {
                    (0, first) | (first, 0) => first,
                    (one, other) => one.min(other),
                };
                known.last_request = known.last_request.max(growth.last_request);
                for (sum, live) in known.live.iter_mut().zip(&growth.live) {
                    *sum = sum.saturating_add(*live);
                }
            }
            None => lines.push(LineGrowth {
                line,
                callers: caller.into_iter().collect(),
                bytes: growth.growth,
                allocations,
                live: growth.live.clone(),
                first_request: growth.first_request,
                last_request: growth.last_request,
            }),
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
    lines
}

/// In how many iterations growth was searched for: from the end of the second one on, since programs set
/// themselves up before.
fn searched_iterations(leaks: &Leaks) -> u64 {
    (leaks.answer.boundaries.len() as u64).saturating_sub(2)
}

/// The sentences about growth, one for each line. `held` are the lines that hold memory at the failure,
/// because a reader compares the sentences with the table of these lines; empty for a run that fits, whose
/// peak need not be its end.
pub(super) fn growth_findings(
    moments: &Moments<'_>,
    lines: &[LineGrowth],
    leaks: &Leaks,
    held: &[HoldingLine],
) -> Vec<Finding> {
    let searched = searched_iterations(leaks);
    let (what, which) = match leaks.answer.steps {
        IterationSource::Markers => ("iteration", " that the recording marks"),
        IterationSource::Repetition if leaks.has_known_iterations => ("iteration", ""),
        IterationSource::Repetition if leaks.are_layers => ("layer", " of one forward pass"),
        IterationSource::Repetition => {
            ("repetition", " of the same requests, which may be iterations or equal layers of a network")
        }
        // The parts have equally many requests and are not iterations: a setup over several parts would look
        // like growth.
        IterationSource::Parts => return Vec::new(),
    };
    let added = |line: &LineGrowth| {
        let (rising, all) = (grouped(line.rising_iterations()), counted(searched.saturating_add(2), what));
        format!(
            "{rising} of the {} {what}s after the first two added to it, of {all}{which}",
            grouped(searched)
        )
    };
    let shown = lines.iter().take(SHOWN_LINES).map(|line| {
        let held = held.iter().find(|held| held.line == line.line).map(|held| held.bytes);
        let text = format!("{} {}; {}", line.text(), line.parts(held, what), added(line));
        let moments = moments.of_growth(leaks, line.first_request, line.last_request);
        let named = Some(line.line.clone());
        Finding { line: named, moments, ..Finding::new(FindingTopic::Grows, text).at(line.last_request) }
    });
    shown.collect()
}

/// The end of a headline about growth over repetitions that may be iterations or equal layers, so that it
/// names no leak; `None` for a small growth.
pub(super) fn repeated_growth(line: &LineGrowth, failed_at: &Autopsy) -> Option<String> {
    // A small part of the memory did not lead to the failure.
    let is_much = line.bytes.get().saturating_mul(2) >= failed_at.failure.memory.allocated.get();
    let kept = line.kept("repetition");
    is_much.then(|| format!("; at {} {kept}", line.text()))
}

/// The end of a headline about equal layers whose activations fill the memory; `None` if they hold less than
/// half of it.
pub(super) fn kept_by_layers(lines: &[LineGrowth], leaks: &Leaks, failed_at: &Autopsy) -> Option<String> {
    let is_growing = |held: &&HoldingLine| lines.iter().any(|line| line.line == held.line);
    let kept: Bytes = failed_at.held.iter().filter(is_growing).map(|held| held.bytes).sum();
    let is_much = kept.get().saturating_mul(2) >= failed_at.failure.memory.allocated.get();
    let layers = counted(leaks.answer.boundaries.len(), "equal layer");
    let most = lines.first()?.text();
    is_much.then(|| {
        format!("; {layers} of one forward pass keep {kept} for the backward pass, most of it at {most}")
    })
}

/// The sentences about the objects that keep the most, which come before those about lines.
pub(super) fn keeper_findings(keepers: &[Keeper], peak: Bytes) -> Vec<Finding> {
    let about = |keeper| Finding::new(FindingTopic::Grows, keeper_text(keeper));
    shown_keepers(keepers, peak).map(about).collect()
}

pub(super) fn leak_headline(line: &LineGrowth) -> String {
    let how = if line.has_larger_tensors() { "growth" } else { "a leak" };
    format!("out of memory by {how} at {}: {}", line.text(), line.kept("iteration"))
}

/// Whether the lines grow by so much that growth is a cause at a peak of so many allocated bytes.
pub(super) fn grow_much(lines: &[LineGrowth], peak: Bytes) -> bool {
    !lines.is_empty() && is_much_growth(lines.iter().map(|line| line.bytes).sum(), peak)
}

/// Whether a run that grows by so many bytes counts as growing, with this peak of allocated bytes.
pub fn is_much_growth(growth: Bytes, peak: Bytes) -> bool {
    growth.get().saturating_mul(MIN_GROWTH_DIVISOR) >= peak.get()
}

/// A run counts as growing if it grows by at least one in this many of the bytes at its peak.
const MIN_GROWTH_DIVISOR: u64 = 100;

/// The end of the headline of a growing run: the iteration that fails, or the peak where none is known to.
fn headline_end(allocated: Bytes, forecast: Option<&Forecast>) -> String {
    match forecast.and_then(failing_iteration) {
        Some(iteration) => format!("{iteration} runs out of memory"),
        None => format!("at most {allocated} are allocated"),
    }
}

/// `forecast` is known only where the device is.
pub(super) fn growth_headline(line: &LineGrowth, allocated: Bytes, forecast: Option<&Forecast>) -> String {
    let end = headline_end(allocated, forecast);
    format!("it fits so far, and grows at {}: {}; {end}", line.text(), line.kept("iteration"))
}

/// The headline of a run in which no line holds more and more, and whose iterations ask for more and more.
pub(super) fn larger_requests_headline(
    line: &str,
    growth: Bytes,
    allocated: Bytes,
    forecast: Option<&Forecast>,
) -> String {
    let end = headline_end(allocated, forecast);
    format!("it fits so far, and each iteration asks for more: {growth} more at `{line}`; {end}")
}

/// The sentence about requests that grow from iteration to iteration.
pub(super) fn larger_requests_finding(line: &str, growth: Bytes) -> Finding {
    let text = format!(
        "the iterations are equal, but each asks for more than the one before: `{line}` for {growth} more, the most of all lines"
    );
    Finding::new(FindingTopic::Grows, text)
}

/// The sentence about the iteration that will fail if the iterations go on; `None` if none is known to fail.
pub(super) fn forecast_finding(forecast: &Forecast, limit: Bytes) -> Option<Finding> {
    let Forecast::Fails { size, line, .. } = forecast else { return None };
    let asked = size.map_or_else(String::new, |size| {
        let line = line.as_ref().map_or_else(String::new, |line| format!(" by `{line}`"));
        format!(", when {size} are asked for{line}")
    });
    let text = format!(
        "if the iterations go on as the last ones did, {} runs out of the {limit} that may be reserved{asked}",
        failing_iteration(forecast)?
    );
    Some(Finding::new(FindingTopic::Grows, text))
}

/// The sentence that says after how many more iterations the growing lines will have taken all bytes below a
/// limit, or a GiB where no limit is known.
pub(super) fn iterations_left(
    lines: &[LineGrowth],
    limit: Option<Bytes>,
    reserved: Bytes,
) -> Option<Finding> {
    let iterations = lines.iter().map(LineGrowth::rising_iterations).max()?;
    let all: Bytes = lines.iter().map(|line| line.bytes).sum();
    let each = all.get().checked_div(iterations).filter(|each| *each > 0)?;
    let left = limit.map_or(Bytes::gib(1), |limit| limit.saturating_sub(reserved));
    let which = limit.map_or_else(
        || "each GiB lasts".to_owned(),
        |limit| format!("the {left} that are left of {limit} last"),
    );
    let more = left.get().checked_div(each)?;
    let text = format!(
        "if each iteration goes on to keep {}, {which} for about {} (an estimate)",
        Bytes::new(each),
        counted(more, "more iteration")
    );
    Some(Finding::new(FindingTopic::Grows, text))
}

/// Advice about what grows, which no replay can test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrowthAdvice {
    /// Iterations keep tensors.
    FreeWhatIsKept,
    /// Tensors become larger from iteration to iteration.
    BoundWhatGrows,
}

impl GrowthAdvice {
    /// The advice about the line that grows most.
    pub(super) fn about(lines: &[LineGrowth]) -> Self {
        let is_larger = lines.first().is_some_and(LineGrowth::has_larger_tensors);
        if is_larger { Self::BoundWhatGrows } else { Self::FreeWhatIsKept }
    }

    /// The advice in a sentence without a full stop.
    pub fn text(self) -> &'static str {
        match self {
            Self::FreeWhatIsKept => {
                "look at what the growing lines store from iteration to iteration: a list or a sum of losses \
                 keeps the tensors of each iteration's backward pass, and `loss.item()` or `loss.detach()` keeps \
                 the number alone (advice, which no replay can test)"
            }
            Self::BoundWhatGrows => {
                "look at what the growing lines make larger from iteration to iteration, such as a cache of keys \
                 and values or a `torch.cat` of all earlier results: bound its length, or keep the older part in \
                 host memory (advice, which no replay can test)"
            }
        }
    }

    pub(super) fn finding(self) -> Finding {
        Finding::new(FindingTopic::Helps, self.text())
    }
}

/// The advice for a forward pass whose activations fill the memory.
pub(super) const KEEP_LESS_FOR_BACKWARD: &str = "the layers keep activations for the backward pass, so that nothing leaks: `torch.utils.checkpoint` around \
     each layer keeps only its input, `torch.autocast` to bfloat16 halves what float32 layers keep, and a smaller \
     batch takes all of it down (advice, which no replay can test)";
