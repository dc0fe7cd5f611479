//! The verdict about a run in which no request fails.

use blockyard_record::{Bytes, counted};
use blockyard_replay::{OnProgress, Progress};
use blockyard_rules::has_setting;

use super::growth::{
    GrowthAdvice, LineGrowth, by_line, forecast_finding, grow_much, growth_findings, growth_headline,
    iterations_left, keeper_findings, larger_requests_finding, larger_requests_headline,
};
use super::memory::{gpus_that_hold, limit_text, reserving, under_the_latest_release};
use super::moments::Moments;
use super::pair_finding;
use super::settings::{setting_comparison, under_plain_settings};
use crate::forecast::{Forecaster, forecast_end};
use crate::live::{LiveMemory, peak};
use crate::outcome::replay_under;
use crate::recommendation::{Recommendation, growth_text, useful_forecaster};
use crate::request_numbers::request_text;
use crate::{
    Conditions, Finding, FindingTopic, Forecast, HoldingLine, Keeper, LabError, Leaks, LimitedRun,
    MomentName, Outcome, Row, RowError, Run, VerdictAnswer, VerdictKind, keeper_growth_text, keepers, leaks,
    shown_keepers,
};

/// The verdict about a run without a failure, or about a run that cannot be replayed.
pub(super) fn verdict_of_fit(
    run: &Run,
    conditions: &Conditions,
    on_progress: OnProgress,
) -> Result<VerdictAnswer, LabError> {
    let total = run.requests().len();
    let mut on_done = |done| on_progress(Progress::new("replaying", done, total));
    let own = replay_under(run, conditions, 0, &mut on_done)?;
    let outcome = match &own.outcome {
        Ok(outcome) => outcome,
        Err(error) => return Ok(verdict_without_replay(conditions, error)),
    };
    let leaks = leaks(run, on_progress)?;
    let lines = by_line(&leaks);
    let mut on_done = |_: usize| on_progress(Progress::new("replaying forward", 0, 0));
    let limited = LimitedRun::of(run, conditions, &mut on_done)?;
    let all = Forecaster::of(limited.run(), &leaks);
    let forecaster = all.as_ref();
    let larger = forecaster.and_then(Forecaster::growing_requests).filter(|_| lines.is_empty());
    let forecaster = forecaster.filter(|_| larger.is_some() || !lines.is_empty());
    let forecast = match forecaster {
        Some(forecaster) => forecaster.forecast(conditions, &mut on_done)?,
        None => None,
    };
    // Growth that has ended before the last iterations does not count. Growth in equal iterations is certain,
    // however small.
    // An object that keeps tensors of most iterations shows that these are iterations.
    let keepers = keepers(run, &leaks);
    let is_growing = (leaks.has_known_iterations || !keepers.is_empty())
        && match &forecast {
            Some(forecast) => *forecast != Forecast::Finishes,
            None => grow_much(&lines, outcome.peak_allocated),
        };
    let growing = lines.first().filter(|_| is_growing);
    let larger = larger.filter(|_| matches!(forecast, Some(Forecast::Fails { .. })));
    let keeper = shown_keepers(&keepers, outcome.peak_allocated).next();
    let grows_at_all = growing.is_some() || larger.is_some() || keeper.is_some();
    // On an assumed device no iteration is known to fail, under another setting neither.
    let is_forecast = grows_at_all && own.is_device_known(run);
    let forecast = forecast.filter(|_| is_forecast);
    let forecaster = forecaster.filter(|_| is_forecast);
    let for_settings = useful_forecaster(all.as_ref(), run, conditions, &own, &mut on_done)?;
    let fit = FittingRun {
        run,
        conditions,
        own: &own,
        outcome,
        lines: &lines,
        growing,
        keepers: &keepers,
        keeper,
        larger,
        forecaster,
        for_settings,
        forecast,
    };
    fit.verdict(&leaks, on_progress)
}

fn verdict_without_replay(conditions: &Conditions, error: &RowError) -> VerdictAnswer {
    let text = format!("the requests cannot be replayed: {error}");
    let findings = vec![Finding::new(FindingTopic::Certainty, text)];
    let headline = "the run cannot be replayed".to_owned();
    VerdictAnswer::new(&conditions.conf, VerdictKind::NotReplayed, headline, findings)
}

/// A run without a failure, and its replay under the conditions of the question.
struct FittingRun<'a> {
    run: &'a Run,
    conditions: &'a Conditions,
    /// The replay.
    own: &'a Row,
    /// The outcome of the replay at the lower bound of the limit.
    outcome: &'a Outcome,
    /// The lines of the program whose live bytes grow from iteration to iteration.
    lines: &'a [LineGrowth],
    /// The first of `lines`, if the growth is so large that the verdict is about it.
    growing: Option<&'a LineGrowth>,
    /// The objects of the program that keep more and more.
    keepers: &'a [Keeper],
    /// The first of `keepers`, if it keeps so much that the verdict is about it.
    keeper: Option<&'a Keeper>,
    /// The line whose requests grow most, and by how many bytes in each iteration, in a run in which no line
    /// holds more and more.
    larger: Option<(String, Bytes)>,
    /// The iterations of a growing run on a known device, if they can be replayed forward.
    forecaster: Option<&'a Forecaster<'a>>,
    /// The iterations of the run, for which a setting must not be worse in the long run.
    for_settings: Option<&'a Forecaster<'a>>,
    /// What becomes of a growing run under its conditions.
    forecast: Option<Forecast>,
}

impl FittingRun<'_> {
    fn verdict(self, leaks: &Leaks, on_progress: OnProgress) -> Result<VerdictAnswer, LabError> {
        let Self { run, conditions, outcome, .. } = self;
        let moments = Moments::of(run);
        let mut findings = self.findings(leaks, &moments);
        findings.extend(pair_finding(run, conditions)?);
        let setting = self.add_comparisons(&mut findings, on_progress)?;
        findings.extend(under_the_latest_release(run, conditions, Some(outcome), on_progress)?);
        findings.sort_by_key(|finding| finding.about);
        let (mut held, moment) = held_at_peak(run, conditions, outcome.peak_allocated, on_progress)?;
        for line in &mut held {
            line.moments = moments.of_line(line);
        }
        if let Some(first) = findings.first_mut().filter(|finding| finding.about == FindingTopic::Happened) {
            first.moments = moments.at(MomentName::Peak, moment).into_iter().collect();
        }
        let (kind, headline) = self.kind_and_headline();
        let answer = VerdictAnswer::new(&conditions.conf, kind, headline, findings);
        Ok(VerdictAnswer { held, moment, setting, forecast: self.forecast, ..answer })
    }

    /// Whether the verdict is about growth.
    fn leaks(&self) -> bool {
        self.growing.is_some() || self.larger.is_some() || self.keeper.is_some()
    }

    fn kind_and_headline(&self) -> (VerdictKind, String) {
        let run = self.run;
        // A replay that passes where the recorded run failed does not say that the run fits.
        if let Some(failed) = run.recorded_oom().filter(|_| *self.conditions == run.conditions()) {
            let failed = request_text(run.request_number(failed));
            let headline =
                format!("it ran out of memory at {failed}, and its replay does not: addresses decide");
            return (VerdictKind::NotReplayed, headline);
        }
        (if self.leaks() { VerdictKind::Grows } else { VerdictKind::Fits }, self.headline())
    }

    /// The peak reserved that the file has, if the question is about the run's own settings: a replay that
    /// begins late does not have the memory that was cached before.
    fn own_reserved(&self) -> Option<Bytes> {
        self.run.recorded.reserved.filter(|_| *self.conditions == self.run.conditions())
    }

    /// The verdict in one sentence.
    fn headline(&self) -> String {
        let allocated = self.outcome.peak_allocated;
        let reserved = self.own_reserved().unwrap_or(self.outcome.peak_reserved);
        if let Some((line, growth)) = &self.larger {
            return larger_requests_headline(line, *growth, allocated, self.forecast.as_ref());
        }
        match self.growing {
            Some(line) => growth_headline(line, allocated, self.forecast.as_ref()),
            None if let Some(keeper) = self.keeper => {
                let kept = keeper_growth_text(keeper);
                format!("it fits so far, and grows: {kept}; at most {allocated} are allocated")
            }
            None => format!("it fits: at most {allocated} are allocated, and {reserved} reserved"),
        }
    }

    /// The sentences that follow from the replay under the run's conditions alone.
    fn findings(&self, leaks: &Leaks, moments: &Moments) -> Vec<Finding> {
        let Self { run, conditions, own, outcome, lines, .. } = *self;
        let (allocated, reserved) = (outcome.peak_allocated, outcome.peak_reserved);
        let mut findings = vec![Finding::new(
            FindingTopic::Happened,
            format!(
                "all requests are served ({}), and none runs out of memory; {}",
                counted(run.request_count(), "request"),
                reserving(run, self.own_reserved(), reserved),
            ),
        )];
        if let Some(recorded) = run.recorded_oom() {
            let recorded = request_text(run.request_number(recorded));
            let text = format!(
                "the recorded run ran out of memory at {recorded}: what the program would have asked for after that is not known"
            );
            findings.push(Finding::new(FindingTopic::Happened, text));
        }
        findings.extend(keeper_findings(self.keepers, allocated));
        findings.extend(growth_findings(moments, lines, leaks, &[]));
        if let Some((line, growth)) = &self.larger {
            findings.push(larger_requests_finding(line, *growth));
            let most = own.limit.map_or(conditions.capacity_of(run), |limit| limit.low);
            findings.extend(self.forecast.as_ref().and_then(|forecast| forecast_finding(forecast, most)));
        }
        if self.growing.is_some() {
            let most = own.limit.map_or(conditions.capacity_of(run), |limit| limit.low);
            let known = self.forecast.as_ref().and_then(|forecast| forecast_finding(forecast, most));
            let is_known = own.is_device_known(run);
            let left = || iterations_left(lines, is_known.then_some(most), reserved);
            findings.extend(known.or_else(left));
            findings.push(GrowthAdvice::about(lines).finding());
        } else if self.keeper.is_some() {
            findings.push(GrowthAdvice::FreeWhatIsKept.finding());
        }
        // A note says that an assumed capacity is assumed.
        if own.is_device_known(run) {
            findings.push(Finding::new(FindingTopic::Gpus, limit_text(run, conditions, own.limit)));
        }
        findings.extend(run.notes().into_iter().map(|note| Finding::new(FindingTopic::Certainty, note)));
        let unused = reserved.saturating_sub(allocated);
        findings.push(Finding::new(
            FindingTopic::Shortfall,
            format!(
                "the replay reserves {unused} more than the {allocated} that are allocated at its peak; a \
                 setting of the allocator can save at most these bytes, apart from what its rounding changes"
            ),
        ));
        findings
    }

    /// Adds the sentences about other settings and about GPUs, which need further replays. Returns the
    /// recommended setting.
    fn add_comparisons(
        &self,
        findings: &mut Vec<Finding>,
        on_progress: OnProgress,
    ) -> Result<Option<String>, LabError> {
        let Self { run, conditions, own, outcome, .. } = *self;
        let rows = under_plain_settings(run, conditions, on_progress)?;
        let mut on_done = |_: usize| on_progress(Progress::new("replaying forward", 0, 0));
        let found = Recommendation::of(self.for_settings, conditions, own, &rows, &mut on_done)?;
        let best = found.best;
        // Most readers ask about expandable segments, whether they help or not.
        let is_asked = |row: &Row| has_setting(&row.conditions.conf, "expandable_segments", "True");
        let against = found.passed_over.first();
        let is_named =
            |place: &usize| Some(*place) != best && Some(*place) != against.map(|(place, _)| *place);
        let asked = rows.iter().position(is_asked).filter(is_named);
        if let Some((place, forecast)) = against
            && let Some(row) = rows.get(*place)
        {
            let end = growth_text(forecast.as_ref(), own.is_device_known(run));
            findings.extend(setting_comparison(&row.conditions.conf, row, outcome).map(|finding| Finding {
                about: FindingTopic::DoesNotHelp,
                text: format!("{}, but {end}", finding.text),
                ..finding
            }));
        }
        for row in best.into_iter().chain(asked).filter_map(|place| rows.get(place)) {
            let mut finding = setting_comparison(&row.conditions.conf, row, outcome);
            if let (Some(forecaster), Some(finding)) = (self.forecaster, &mut finding) {
                let mut on_done = |_: usize| on_progress(Progress::new("replaying forward", 0, 0));
                let then = forecaster.forecast(&conditions.and_conf(&row.conditions.conf), &mut on_done)?;
                if let Some(end) = then.as_ref().and_then(forecast_end) {
                    finding.text.push_str(", ");
                    finding.text.push_str(&end);
                }
            }
            findings.extend(finding);
        }
        let best = best.and_then(|best| rows.get(best));
        let continues = self.leaks() || run.recorded_oom().is_some();
        findings.extend(gpus_that_hold(run, conditions, outcome, best, continues, on_progress)?);
        Ok(best.map(|best| best.conditions.conf.clone()))
    }
}

/// The lines that hold memory at the peak of allocated bytes, and the number of requests before the peak.
fn held_at_peak(
    run: &Run,
    conditions: &Conditions,
    allocated: Bytes,
    on_progress: OnProgress,
) -> Result<(Vec<HoldingLine>, u64), LabError> {
    let mut on_done = |_: usize| on_progress(Progress::new("looking for the peak", 0, 0));
    let limited = LimitedRun::of(run, conditions, &mut on_done)?;
    let run = limited.run();
    let Some(fixed) = limited.conditions_at_bounds(&conditions.conf).into_iter().next() else {
        return Ok((Vec::new(), 0));
    };
    let end = peak(run, &fixed, allocated, &mut on_done)?;
    let live = LiveMemory::after(run, &fixed, &conditions.config(run)?, end, &mut on_done)?;
    Ok((live.holders(run), run.number_of_last(end)))
}
