//! The moments that the sentences of a verdict are about.

use blockyard_workload::Request;

use crate::{HoldingLine, Leaks, MomentName, Run, VerdictMoment};

/// The number of requests for memory up to each request of a run, to find moments.
pub(super) struct Moments<'a> {
    run: &'a Run,
    /// How many requests for memory there are up to each request, itself included.
    allocations: Vec<u64>,
}

impl<'a> Moments<'a> {
    pub(super) fn of(run: &'a Run) -> Self {
        let allocations = run.requests().iter().scan(0_u64, |count, request| {
            *count = count.saturating_add(u64::from(matches!(request, Request::Allocate { .. })));
            Some(*count)
        });
        Self { run, allocations: allocations.collect() }
    }

    /// The moment after the request with a number; `None` for 0, which means no request.
    pub(super) fn at(&self, name: MomentName, request: u64) -> Option<VerdictMoment> {
        let index = self.run.request_index(request)?;
        let all = self.allocations.last().copied()?;
        let allocations_after = all.saturating_sub(*self.allocations.get(index)?);
        Some(VerdictMoment { name, request, allocations_after, step: None })
    }

    fn both(&self, first: (MomentName, u64), last: (MomentName, u64)) -> Vec<VerdictMoment> {
        let first = (first.1 < last.1).then_some(first);
        let all = first.into_iter().chain([last]);
        all.filter_map(|(name, request)| self.at(name, request)).collect()
    }

    /// The moments of the first and the last allocation of a growth; one moment if both are the same.
    pub(super) fn of_growth(&self, leaks: &Leaks, first: u64, last: u64) -> Vec<VerdictMoment> {
        let mut both = self.both((MomentName::FirstKept, first), (MomentName::LastKept, last));
        for moment in both.iter_mut().filter(|_| leaks.has_known_iterations) {
            let before =
                leaks.answer.boundaries.partition_point(|boundary| *boundary < moment.request) as u64;
            moment.step = Some(before.saturating_add(1));
        }
        both
    }

    /// The moments at which the first and the last live block of a line were allocated; one moment for a
    /// single block.
    pub(super) fn of_line(&self, line: &HoldingLine) -> Vec<VerdictMoment> {
        self.both((MomentName::FirstHeld, line.first_request), (MomentName::LastHeld, line.last_request))
    }
}
