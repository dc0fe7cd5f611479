//! Which setting is best for a run.

use std::ops::ControlFlow;

use blockyard_record::{Bytes, OnDone, counted, grouped};
use blockyard_rules::{AllocatorConfig, Release, has_setting, setting_values, shell_line, with_setting};
use blockyard_workload::Request;
use serde::{Deserialize, Serialize};

use crate::forecast::forecast_end;
use crate::recommendation::Recommendation;
use crate::{Conditions, LabError, LimitedRun, Outcome, Row, Run};

/// The result of a search for the best setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The run under its own settings.
    pub baseline: Row,
    /// Every setting that was tried, in the order of the candidates.
    pub rows: Vec<Row>,
    /// The rows that no other beats in both peak reserved and device calls, by ascending peak reserved, as
    /// indices.
    pub front: Vec<usize>,
    /// The index of the recommended row, if one is better than the baseline: as the
    /// verdict has it.
    pub best: Option<usize>,
    /// The line of a shell or a program that sets the best row's setting.
    pub line: Option<String>,
    /// What the best row gains and costs, and when the recommendation would be wrong, in one sentence.
    pub sentence: String,
    /// Sentences about facts that are not known about the run.
    pub notes: Vec<String>,
}

/// The report of a search on its progress.
#[derive(Clone, Copy, Debug)]
pub struct SearchStep<'a> {
    /// A setting that was just tried; `None` for a report between two settings.
    pub row: Option<&'a Row>,
    /// How many settings are done.
    pub done: usize,
    /// How many settings are tried in all.
    pub total: usize,
}

const SPLITS_MIB: [u64; 5] = [32, 64, 128, 256, 512];
const DIVISIONS: [u64; 3] = [2, 4, 8];
const LARGE_SEGMENTS_MIB: [u64; 2] = [64, 256];
const THRESHOLDS: [&str; 2] = ["0.6", "0.8"];

/// The other backend. The cost of its calls inside of the driver is not counted, so it is tried and never
/// recommended.
const DRIVERS_POOL: &str = "backend:cudaMallocAsync";

/// The plain settings for a run, the plainest first: the default settings, the run's own settings without one
/// of them, and the run's own settings with one more. The verdict tries these, and a search tries them before
/// all others.
///
/// A limit on splitting above the largest request changes nothing, and garbage collection needs a memory
/// fraction: such settings are left out.
pub fn plain_candidates(run: &Run, conditions: &Conditions) -> Vec<String> {
    let own = &conditions.conf;
    let mut all = vec![String::new()];
    all.extend(setting_values(own).map(|(key, _)| with_setting(own, key, None)));
    for candidate in candidates_by_key(run, conditions).into_iter().flatten() {
        if let Some((key, value)) = candidate.split_once(':') {
            // The new setting comes after the run's own settings.
            let rest = with_setting(own, key, None);
            all.push(with_setting(&rest, key, Some(value)));
        }
    }
    all.retain(|conf| conf != own);
    let mut plain = Vec::with_capacity(all.len());
    add_new(&mut plain, all, conditions.release_of(run));
    plain
}

/// Adds settings that are not in the list yet. What the release refuses is left out: settings that it does not
/// have, and pairs such as a limit on splitting below the size of segments.
fn add_new(known: &mut Vec<String>, settings: Vec<String>, release: Release) {
    for conf in settings {
        if !known.contains(&conf) && AllocatorConfig::parse(&conf, release).is_ok() {
            known.push(conf);
        }
    }
}

/// Whether settings are the default ones, or differ from the run's own in one setting at most. The driver's
/// pool is a model and so not plain.
fn is_plain(own: &str, conf: &str) -> bool {
    // How many keys of one text the other text does not have with the same value.
    let changed =
        |one, other| setting_values(one).filter(|entry| !has_setting(other, entry.0, entry.1)).count();
    let both = setting_values(conf).filter(|(key, value)| {
        !has_setting(own, key, value) && setting_values(own).any(|(known, _)| known == *key)
    });
    let count = changed(own, conf) + changed(conf, own) - both.count();
    !is_drivers_pool(conf) && (conf.is_empty() || count <= 1)
}

/// All sensible settings for a run, and pairs of them. The [plain settings](plain_candidates) come first.
pub fn candidates(run: &Run, conditions: &Conditions) -> Vec<String> {
    let mut all = vec![String::new()];
    let release = conditions.release_of(run);
    add_new(&mut all, plain_candidates(run, conditions), release);
    let of_keys = candidates_by_key(run, conditions);
    let mut others: Vec<String> = of_keys.iter().flatten().cloned().collect();
    for (place, of_key) in of_keys.iter().enumerate() {
        for other in of_keys.iter().skip(place + 1) {
            others.extend(
                of_key.iter().flat_map(|first| other.iter().map(move |second| format!("{first},{second}"))),
            );
        }
    }
    let splits = of_keys.iter().flatten().filter(|conf| conf.starts_with("max_split_size_mb"));
    others.extend(splits.map(|split| format!("{split},max_non_split_rounding_mb:128")));
    others.push(DRIVERS_POOL.to_owned());
    add_new(&mut all, others, release);
    all
}

/// The single settings that are worth trying, one list for each key.
fn candidates_by_key(run: &Run, conditions: &Conditions) -> Vec<Vec<String>> {
    let largest = run.requests().iter().map(|request| match request {
        Request::Allocate { size, .. } => *size,
        _ => Bytes::ZERO,
    });
    let largest = largest.max().unwrap_or_default();
    let splits = SPLITS_MIB.iter().filter(|limit| Bytes::mib(**limit) <= largest);
    let has_limit = run.limit_under(conditions).is_some_and(|limit| limit.is_fraction());
    let thresholds = THRESHOLDS.iter().filter(|_| has_limit);
    let mut of_keys = vec![
        vec!["expandable_segments:True".to_owned()],
        splits.map(|limit| format!("max_split_size_mb:{limit}")).collect(),
        DIVISIONS.iter().map(|count| format!("roundup_power2_divisions:{count}")).collect(),
        LARGE_SEGMENTS_MIB.iter().map(|size| format!("large_segment_size_mb:{size}")).collect(),
        thresholds.map(|share| format!("garbage_collection_threshold:{share}")).collect(),
    ];
    of_keys.retain(|of_key: &Vec<String>| !of_key.is_empty());
    of_keys
}

/// Replays a run under each of the settings, on as many threads as there are cores, and says which is best.
///
/// `on_step` gets every row as soon as it is known. In WebAssembly there is one thread; the page's workers
/// call [`replay_under`](crate::replay_under) for each of the [`candidates`], and then [`SearchResult::of`].
///
/// # Errors
///
/// [`LabError::Cancelled`]. A wrong setting is a row with its error.
pub fn search(
    run: &Run,
    conditions: &Conditions,
    settings: &[String],
    on_step: &mut dyn FnMut(SearchStep<'_>) -> ControlFlow<()>,
) -> Result<SearchResult, LabError> {
    let total = settings.len() + 1;
    let mut alive = |_: usize| on_step(SearchStep { row: None, done: 0, total });
    let limited = LimitedRun::of(run, conditions, &mut alive)?;
    let settings: Vec<&str> =
        std::iter::once(conditions.conf.as_str()).chain(settings.iter().map(String::as_str)).collect();
    let mut rows = replay_all(&limited, &settings, on_step)?.into_iter();
    let Some(baseline) = rows.next() else { return Err(LabError::Cancelled) };
    let mut alive = |_: usize| on_step(SearchStep { row: None, done: total, total });
    SearchResult::of(run, conditions, baseline, rows.collect(), &mut alive)
}

impl SearchResult {
    /// Says which of the rows of a run is best, where its iterations are replayed forward under those that come
    /// first.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`].
    pub fn of(
        run: &Run,
        conditions: &Conditions,
        baseline: Row,
        rows: Vec<Row>,
        on_done: OnDone,
    ) -> Result<Self, LabError> {
        let front = pareto_front(&rows);
        let found = Recommendation::of_search(run, conditions, &baseline, &rows, on_done)?;
        let best = found.best;
        let against = found.passed_over_text(run, &baseline, &rows);
        let chosen = best.and_then(|best| rows.get(best));
        let line = chosen.map(|row| shell_line(&row.conditions.conf));
        let sentence = match chosen {
            Some(row) => {
                let then = found.forecast.as_ref().and_then(forecast_end);
                let least = least_clause_text(row, front.first().and_then(|first| rows.get(*first)));
                let against = against.map_or_else(String::new, |against| format!("; {against}"));
                gain_sentence(row, &baseline, then) + &least + &against
            }
            None if front.is_empty() => nothing_fits_sentence(&baseline, &rows),
            None if let Some(against) = against => {
                let tried = counted(found.passed_over.len(), "setting");
                format!(
                    "no setting is recommended: {against}; {tried} were replayed forward, and under none the run goes on"
                )
            }
            None => "no setting that was tried reserves less than the run's own".to_owned(),
        };
        let notes = run.notes();
        Ok(Self { baseline, rows, front, best, line, sentence, notes })
    }
}

/// The indices of the settings that are better than the run's own, the one to recommend first.
///
/// The verdict and a search both use this order, and so cannot recommend different settings.
/// [Plain](plain_candidates) settings come first, then others. For a run that goes out of memory, the plain
/// settings with which the run fits are in the order in which they were tried; for a run that fits, the one that
/// reserves least comes first.
pub(crate) fn ranked(baseline: &Row, rows: &[Row]) -> Vec<usize> {
    let own = baseline.outcome_at_lowest().filter(|_| baseline.fits());
    let is_better = |row: &Row| {
        let less = |outcome: &Outcome| own.is_none_or(|own| outcome.peak_reserved < own.peak_reserved);
        row.fits() && !is_drivers_pool(&row.conditions.conf) && row.outcome_at_lowest().is_some_and(less)
    };
    let better = rows.iter().enumerate().filter(|(_, row)| is_better(row));
    let (mut plain, mut others): (Vec<_>, Vec<_>) =
        better.partition(|(_, row)| is_plain(&baseline.conditions.conf, &row.conditions.conf));
    let rank = |(index, row): &(usize, &Row)| {
        let outcome = row.outcome_at_lowest();
        let peak = outcome.map(|outcome| (outcome.peak_reserved, outcome.device_calls()));
        (peak, row.conditions.conf.len(), *index)
    };
    if own.is_some() {
        plain.sort_by_key(rank);
    }
    others.sort_by_key(rank);
    plain.into_iter().chain(others).map(|(index, _)| index).collect()
}

/// A sentence that another setting reserves less than the recommended one; empty if none does.
fn least_clause_text(taken: &Row, first: Option<&Row>) -> String {
    let (Some(first), Some(taken)) = (first, taken.outcome_at_lowest()) else { return String::new() };
    match first.outcome_at_lowest() {
        Some(least) if least.peak_reserved < taken.peak_reserved => {
            format!(
                "; of all that were tried {} reserves least, {} at its peak",
                setting_text(first),
                least.peak_reserved
            )
        }
        _ => String::new(),
    }
}

/// The sentence if no setting fits at both bounds of the limit; some may fit at one bound.
fn nothing_fits_sentence(baseline: &Row, rows: &[Row]) -> String {
    let depends = rows.iter().filter(|row| row.depends_on_limit() && !is_drivers_pool(&row.conditions.conf));
    match (depends.min_by_key(|row| row.conditions.conf.len()), baseline.limit) {
        (Some(row), Some(limit)) => {
            let fits_at_low = row.outcome_at_lowest().is_some_and(|outcome| outcome.ooms == 0);
            let bound = if fits_at_low { limit.low } else { limit.high };
            format!(
                "no setting is sure to let the run fit: it depends on the limit, which is {}, and under {} the run fits at {bound} only",
                limit.range_text(),
                setting_text(row)
            )
        }
        _ => "no setting lets the run fit: it needs more memory, or fewer live bytes".to_owned(),
    }
}

/// The setting of a row, as the subject of a sentence: the verb after it is in the singular.
pub(crate) fn setting_text(row: &Row) -> &str {
    if row.conditions.conf.is_empty() { "the default setting" } else { &row.conditions.conf }
}

/// The rows that fit at both bounds of the limit and that no other row beats in both peak reserved and device
/// calls, by ascending peak reserved; of equal rows the shortest setting.
fn pareto_front(rows: &[Row]) -> Vec<usize> {
    let measured = |(index, row): (usize, &Row)| {
        let outcome =
            row.outcome_at_lowest().filter(|_| row.fits() && !is_drivers_pool(&row.conditions.conf))?;
        Some((outcome.peak_reserved, outcome.device_calls(), row.conditions.conf.len(), index))
    };
    let mut fitting: Vec<_> = rows.iter().enumerate().filter_map(measured).collect();
    fitting.sort_unstable();
    let mut fewest = u64::MAX;
    fitting.retain(|(_, calls, _, _)| {
        let is_on_front = *calls < fewest;
        fewest = fewest.min(*calls);
        is_on_front
    });
    fitting.into_iter().map(|(.., index)| index).collect()
}

/// Whether the settings select the driver's pool.
pub fn is_drivers_pool(conf: &str) -> bool {
    has_setting(conf, "backend", "cudaMallocAsync")
}

fn gain_sentence(row: &Row, baseline: &Row, then: Option<String>) -> String {
    let then = then.map_or_else(String::new, |then| format!(", {then}"));
    let name = setting_text(row);
    let Some(outcome) = row.outcome_at_lowest() else { return String::new() };
    let when = "this holds for these requests in this order, and another batch size, other shapes or another release of \
                PyTorch may change it";
    match baseline.outcome_at_lowest() {
        Some(own) if baseline.fits() => {
            let saved = own.peak_reserved.saturating_sub(outcome.peak_reserved);
            format!(
                "{name} reserves {saved} less at its peak ({} instead of {}) and {}{then}; {when}",
                outcome.peak_reserved,
                own.peak_reserved,
                device_calls_text(outcome, own),
            )
        }
        _ => format!(
            "under {name} {}{}, with {} reserved at its peak and {} device calls{then}; {when}",
            if row.ends_at_failure { "all that was recorded passes" } else { "the run fits" },
            if row.at_high.is_some() { " at both bounds of its limit" } else { "" },
            outcome.peak_reserved,
            grouped(outcome.device_calls()),
        ),
    }
}

fn device_calls_text(outcome: &Outcome, own: &Outcome) -> String {
    let (new, old) = (outcome.device_calls(), own.device_calls());
    let (words, more) = match new.cmp(&old) {
        std::cmp::Ordering::Equal => return format!("makes as many device calls ({})", grouped(new)),
        std::cmp::Ordering::Greater => ("costs", " more"),
        std::cmp::Ordering::Less => ("saves", ""),
    };
    let (change, new, old) = (grouped(new.abs_diff(old)), grouped(new), grouped(old));
    format!("{words} {change}{more} device calls ({new} instead of {old})")
}

#[cfg(target_family = "wasm")]
pub(crate) fn replay_all(
    limited: &LimitedRun<'_>,
    settings: &[&str],
    on_step: &mut dyn FnMut(SearchStep<'_>) -> ControlFlow<()>,
) -> Result<Vec<Row>, LabError> {
    let total = settings.len();
    let mut rows = Vec::with_capacity(total);
    for (done, conf) in settings.iter().enumerate() {
        let row = limited.row(conf, 0, &mut |_| on_step(SearchStep { row: None, done, total }))?;
        if on_step(SearchStep { row: Some(&row), done: done + 1, total }).is_break() {
            return Err(LabError::Cancelled);
        }
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(not(target_family = "wasm"))]
pub(crate) fn replay_all(
    limited: &LimitedRun<'_>,
    settings: &[&str],
    on_step: &mut dyn FnMut(SearchStep<'_>) -> ControlFlow<()>,
) -> Result<Vec<Row>, LabError> {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    const SIGN_OF_LIFE: Duration = Duration::from_millis(50);
    let total = settings.len();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(total);
    let (next, is_cancelled) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    let keep_on = || {
        if is_cancelled.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some((index, conf)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    settings.get(index).map(|conf| (index, conf))
                } {
                    let row = limited.row(conf, 0, &mut |_| keep_on());
                    // The receiver does not exist any more: the search was cancelled.
                    if sender.send((index, row)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut rows: Vec<Option<Row>> = vec![None; total];
        let mut done = 0;
        let mut report = |step: SearchStep<'_>| {
            if on_step(step).is_break() {
                is_cancelled.store(true, Ordering::Relaxed);
                return Err(LabError::Cancelled);
            }
            Ok(())
        };
        while done < total {
            match receiver.recv_timeout(SIGN_OF_LIFE) {
                Ok((index, row)) => {
                    let row = row?;
                    done += 1;
                    report(SearchStep { row: Some(&row), done, total })?;
                    if let Some(place) = rows.get_mut(index) {
                        *place = Some(row);
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => report(SearchStep { row: None, done, total })?,
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(rows.into_iter().flatten().collect())
    })
}
