//! Which setting is recommended: one that helps now, and under which no later iteration is forecast to fail.

use blockyard_record::OnDone;

use crate::forecast::{Forecaster, failing_iteration};
use crate::setting_search::{ranked, setting_text};
use crate::{Conditions, Forecast, LabError, LimitedRun, Row, Run, leaks};

/// The most settings that are replayed forward.
const MAX_FORECASTS: usize = 12;

/// The recommended setting among those that were tried.
#[derive(Debug, Default)]
pub(crate) struct Recommendation {
    /// The index of the row; `None` if no setting is better than the run's own, and does not only postpone the
    /// failure.
    pub(crate) best: Option<usize>,
    /// What becomes of the run under it, where that is known.
    pub(crate) forecast: Option<Forecast>,
    /// The better rows that are not recommended, since under them the run fails if its iterations go on, or its
    /// reserved memory grows: with the forecast of the failure.
    pub(crate) passed_over: Vec<(usize, Option<Forecast>)>,
}

impl Recommendation {
    /// The recommendation for a run whose iterations `forecaster` replays forward, if they are known.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`].
    pub(crate) fn of(
        forecaster: Option<&Forecaster<'_>>,
        conditions: &Conditions,
        baseline: &Row,
        rows: &[Row],
        on_done: OnDone,
    ) -> Result<Self, LabError> {
        let mut found = Self::default();
        let ranked = ranked(baseline, rows);
        let Some(forecaster) = forecaster else {
            return Ok(Self { best: ranked.first().copied(), ..found });
        };
        let own_grows = !ranked.is_empty() && forecaster.leaks(conditions, on_done)?;
        for index in ranked.into_iter().take(MAX_FORECASTS) {
            let Some(row) = rows.get(index) else { continue };
            let under = conditions.and_conf(&row.conditions.conf);
            match forecaster.forecast(&under, on_done)? {
                fails @ Some(Forecast::Fails { .. }) => found.passed_over.push((index, fails)),
                _ if !own_grows && forecaster.leaks(&under, on_done)? => {
                    found.passed_over.push((index, None));
                }
                forecast => {
                    (found.best, found.forecast) = (Some(index), forecast);
                    break;
                }
            }
        }
        Ok(found)
    }

    /// The recommendation for a run that was searched.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`].
    pub(crate) fn of_search(
        run: &Run,
        conditions: &Conditions,
        baseline: &Row,
        rows: &[Row],
        on_done: OnDone,
    ) -> Result<Self, LabError> {
        let limited = LimitedRun::of(run, conditions, on_done)?;
        let run = limited.run();
        let failed = baseline.outcome_at_highest().and_then(|outcome| outcome.failed);
        if let Some(failed) = failed.or_else(|| baseline.outcome_at_lowest()?.failed) {
            let cut = run.until_failure(conditions, failed.saturating_add(1), on_done)?;
            let leaks = leaks(&cut, &mut |_progress| on_done(0))?;
            let forecaster = Forecaster::to_failure(&cut, conditions, &leaks, on_done)?;
            return Self::of(forecaster.as_ref(), conditions, baseline, rows, on_done);
        }
        let leaks = leaks(run, &mut |_progress| on_done(0))?;
        let forecaster = Forecaster::of(run, &leaks);
        let forecaster = useful_forecaster(forecaster.as_ref(), run, conditions, baseline, on_done)?;
        Self::of(forecaster, conditions, baseline, rows, on_done)
    }

    /// What speaks against the first row that is not recommended: `under max_split_size_mb:32 less is reserved, but
    /// iteration 88 runs out of memory`; `None` if there is none.
    pub(crate) fn passed_over_text(&self, run: &Run, baseline: &Row, rows: &[Row]) -> Option<String> {
        let (index, forecast) = self.passed_over.first()?;
        let gain = if baseline.fits() { "less is reserved" } else { "all that was recorded passes" };
        let name = setting_text(rows.get(*index)?);
        let is_known = baseline.is_device_known(run);
        Some(format!("under {name} {gain}, but {}", growth_text(forecast.as_ref(), is_known)))
    }
}

/// `iteration 88 runs out of memory`; on an assumed device no iteration is known to.
pub(crate) fn growth_text(forecast: Option<&Forecast>, is_device_known: bool) -> String {
    match forecast.and_then(failing_iteration).filter(|_| is_device_known) {
        Some(iteration) => format!("{iteration} runs out of memory"),
        None => "the reserved memory grows from iteration to iteration".to_owned(),
    }
}

/// The forecaster of a run that fits, unless it can tell nothing about a setting: on an assumed device no
/// iteration of a program that grows is known to fail.
pub(crate) fn useful_forecaster<'a, 'b>(
    forecaster: Option<&'a Forecaster<'b>>,
    run: &Run,
    conditions: &Conditions,
    own: &Row,
    on_done: OnDone,
) -> Result<Option<&'a Forecaster<'b>>, LabError> {
    let Some(forecaster) = forecaster else { return Ok(None) };
    if own.is_device_known(run) {
        return Ok(Some(forecaster));
    }
    let leaks = matches!(forecaster.forecast(conditions, on_done)?, Some(Forecast::Fails { .. }));
    Ok(Some(forecaster).filter(|_| !leaks))
}
