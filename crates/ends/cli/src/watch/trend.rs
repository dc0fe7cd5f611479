//! What steps that are not alike lead to: a straight line through the bytes that are left at their ends.

use std::collections::VecDeque;

use blockyard_lab::Forecast;
use blockyard_record::Bytes;
use blockyard_watch::{DeviceMemory, DeviceStep};

/// The first steps of a program set it up.
const SETUP: u64 = 2;
/// Fewer steps say nothing.
const MIN_STEPS: usize = 12;
const MAX_STEPS: usize = 64;

/// The last steps of one device.
#[derive(Debug, Default)]
pub(super) struct Trend {
    steps: VecDeque<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    number: u64,
    /// What is allocated at its end.
    left: Bytes,
    /// The most that is reserved in it: free pieces between live blocks grow as what is left does.
    peak: Bytes,
}

impl Trend {
    /// Adds the next step. What came before lost events is not compared with what comes after.
    pub(super) fn add(&mut self, number: u64, step: &DeviceStep) {
        if step.has_gap || number <= SETUP {
            self.steps.clear();
            return;
        }
        if self.steps.len() == MAX_STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(Step { number, left: step.allocated, peak: step.peak_reserved });
    }

    /// The first step whose peak is above what PyTorch can reserve, if peaks go on to rise as what is left does. `None`
    /// where it does not rise: then some step of the last half leaves no more than one of the first half.
    pub(super) fn forecast(&self, memory: DeviceMemory) -> Option<Forecast> {
        // Numbers of 0 are not known.
        let limit = [memory.available, memory.limit].into_iter().filter(|bytes| *bytes > 0).min()?;
        let steps: Vec<Step> = self.steps.iter().copied().collect();
        let last = steps.last().filter(|_| steps.len() >= MIN_STEPS)?.number;
        let (first_half, last_half) = steps.split_at(steps.len() / 2);
        let most = first_half.iter().map(|step| step.left).max()?;
        last_half.iter().all(|step| step.left > most).then_some(())?;
        // The median of the rises between any two steps: one long sequence does not change it.
        let mut rises: Vec<i64> = Vec::new();
        for (place, from) in steps.iter().enumerate() {
            for to in steps.iter().skip(place + 1) {
                let rise = to.left.get().cast_signed().wrapping_sub(from.left.get().cast_signed());
                let count = to.number.saturating_sub(from.number).max(1).cast_signed();
                rises.push(rise / count);
            }
        }
        rises.sort_unstable();
        let rise = u64::try_from(*rises.get(rises.len() / 2)?).ok().filter(|rise| *rise > 0)?;
        let peak_now = |step: &Step| {
            let later = last.saturating_sub(step.number);
            step.peak.get().saturating_add(rise.saturating_mul(later))
        };
        let peak = steps.iter().map(peak_now).max()?;
        let more = limit.saturating_sub(peak) / rise;
        let iteration = last.saturating_add(more).saturating_add(1);
        Some(Forecast::Fails {
            iteration,
            at_upper_bound: Some(iteration),
            size: None,
            line: None,
            is_estimate: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: DeviceMemory = DeviceMemory { available: 1000 << 20, total: 1000 << 20, limit: 0 };

    /// The step that fails, after steps with these MiB left; each works in up to 30 MiB, and the device has 1,000.
    fn fails_after(left: impl Fn(u64) -> u64, steps: u64) -> Option<u64> {
        let mut trend = Trend::default();
        for number in 1..=steps {
            let [allocated, peak_reserved] =
                [0, 10 + number * 7 % 21].map(|more| Bytes::mib(left(number) + more));
            trend.add(number, &DeviceStep { allocated, peak_reserved, ..DeviceStep::default() });
        }
        match trend.forecast(DEVICE)? {
            Forecast::Fails { iteration, is_estimate: true, .. } => Some(iteration),
            _ => None,
        }
    }

    #[test]
    fn steps_of_any_length_that_keep_something_say_about_when_the_memory_is_used_up() {
        // About 10 MiB a step: 970 MiB are used up in step 97. Twelve steps are a few.
        let uneven = |number: u64| number * 10 + number * number % 13;
        assert_eq!(fails_after(uneven, 13), None);
        for steps in [14, 30, 60, 90] {
            let found = fails_after(uneven, steps).unwrap();
            let most = if steps < 20 { 10 } else { 3 };
            assert!(found.abs_diff(97) <= most, "after {steps} steps: {found}");
        }
    }

    #[test]
    fn steps_that_leave_as_much_as_before_say_nothing() {
        assert_eq!(fails_after(|_| 100, 40), None);
        assert_eq!(fails_after(|number| 100 + number * number % 13, 40), None);
        // It rose once, and stays.
        assert_eq!(fails_after(|number| if number < 20 { 100 } else { 300 }, 70), None);
        assert_eq!(fails_after(|number| 500 - number, 40), None);
    }

    #[test]
    fn lost_events_begin_a_new_line() {
        let mut trend = Trend::default();
        for number in 3..40 {
            let step = DeviceStep {
                allocated: Bytes::mib(number * 10),
                has_gap: number == 30,
                ..DeviceStep::default()
            };
            trend.add(number, &step);
        }
        assert_eq!(trend.forecast(DEVICE), None);
    }
}
