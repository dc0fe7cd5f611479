//! A change of a run that is tried by replays.

use std::slice;

use blockyard_record::OnDone;

use super::at_peak;
use crate::limited_run::FixedConditions;
use crate::outcome::calls_text;
use crate::{GapOutcome, GapRemedy, GapRemedyKind, LabError, LimitedRun, Outcome, Run};

/// A run, and its replay to which each change is compared.
pub(super) struct Trial<'a> {
    pub(super) limited: &'a LimitedRun<'a>,
    pub(super) run: &'a Run,
    /// The conditions at the bounds of the limit: a change helps if it helps at each.
    pub(super) bounds: &'a [FixedConditions],
    /// The bound whose numbers count, as an index.
    pub(super) place: usize,
    /// How many requests are replayed: up to the one that failed, or all.
    pub(super) end: usize,
    /// The numbers of the run itself.
    pub(super) own: GapOutcome,
    /// Whether the run fails without a change.
    pub(super) fails: bool,
}

impl From<&Outcome> for GapOutcome {
    fn from(outcome: &Outcome) -> Self {
        Self {
            peak_reserved: outcome.peak_reserved,
            device_calls: outcome.device_calls(),
            alloc_retries: outcome.alloc_retries,
        }
    }
}

impl Trial<'_> {
    /// The numbers of a changed run, whose first `end` requests are replayed; `None` if a request fails.
    pub(super) fn outcome(
        &self,
        run: &Run,
        bounds: &[FixedConditions],
        end: usize,
        on_done: OnDone,
    ) -> Result<Option<GapOutcome>, LabError> {
        let mut counted = None;
        for (place, fixed) in bounds.iter().enumerate() {
            let Some(outcome) = fixed.served(run, end, on_done)? else { return Ok(None) };
            if place == self.place {
                counted = Some(GapOutcome::from(&outcome));
            }
        }
        Ok(counted)
    }

    /// The change to another setting; `None` if the setting reserves no less.
    pub(super) fn setting(&self, conf: &str, on_done: OnDone) -> Result<Option<GapRemedy>, LabError> {
        let bounds = self.limited.conditions_at_bounds(conf);
        let Some(outcome) = self.outcome(self.run, &bounds, self.end, on_done)? else { return Ok(None) };
        let name = if conf.is_empty() { "the default settings" } else { conf };
        let remedy = GapRemedy { conf: Some(conf.to_owned()), ..empty(GapRemedyKind::Setting) };
        self.proved(remedy, name, outcome, (self.run, &bounds, self.end), on_done)
    }

    /// The change with its numbers, its parts and its sentence; `None` if it lowers nothing. `changed` is the
    /// changed run, its conditions, and how many of its requests are replayed.
    pub(super) fn proved(
        &self,
        remedy: GapRemedy,
        name: &str,
        outcome: GapOutcome,
        changed: (&Run, &[FixedConditions], usize),
        on_done: OnDone,
    ) -> Result<Option<GapRemedy>, LabError> {
        let (run, bounds, end) = changed;
        if outcome.peak_reserved >= self.own.peak_reserved {
            return Ok(None);
        }
        let Some(fixed) = bounds.get(self.place) else { return Ok(None) };
        let (peak, _) = at_peak(run, fixed, end, on_done)?;
        let sentence = self.sentence(name, remedy.conf.as_deref(), &outcome);
        Ok(Some(GapRemedy { outcome, parts: peak.parts, sentence, ..remedy }))
    }

    fn sentence(&self, name: &str, conf: Option<&str>, outcome: &GapOutcome) -> String {
        let passes = if self.fails { "the request passes, and " } else { "" };
        let most = format!("with {name} {passes}at most {} are reserved", outcome.peak_reserved);
        let less = self.own.peak_reserved.saturating_sub(outcome.peak_reserved);
        let less = if self.fails { String::new() } else { format!(", {less} less") };
        let calls = calls_text(conf.as_slice(), slice::from_ref(outcome), &self.own);
        format!("{most}{less}, with {calls}")
    }
}

/// A change of a kind without anything else.
pub(super) fn empty(kind: GapRemedyKind) -> GapRemedy {
    GapRemedy {
        kind,
        conf: None,
        size: None,
        request: None,
        line: None,
        caller: None,
        occurrence: None,
        outcome: GapOutcome::default(),
        parts: crate::GapParts::default(),
        sentence: String::new(),
    }
}
