//! The cost of a replay: silent, recorded, and for many configurations.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use blockyard_device::VirtualDevice;
use blockyard_measure::{Measurement, ReportRow, Section, alternate};
use blockyard_pytorch::trace::requests;
use blockyard_record::Bytes;
use blockyard_replay::{PreparedWorkload, RunSettings, run, sweep, totals};
use blockyard_rules::{AllocatorConfig, Release};

use super::BenchContext;
use crate::suite::{CAPACITY, PROGRAMS, recording};

/// The fewest requests of a timed turn: short programs are replayed several times.
const REQUESTS_A_TURN: usize = 200_000;

/// Milliseconds a million requests of recorded programs: silent under one configuration and under 24, and
/// recorded.
///
/// # Errors
///
/// When a recording cannot be replayed, or the ways to replay it have different statistics.
pub(super) fn replay(context: &BenchContext) -> Result<Section> {
    let configs = configurations()?;
    let progress = super::progress("replay", PROGRAMS.len())?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for name in PROGRAMS {
        progress.set_message(name);
        match recording(&context.workspace, name)? {
            Some(recorded) => {
                let workload = requests(&recorded)?.workload;
                rows.push(row(name, &workload, &configs, context.rounds)?);
            }
            None => notes.push(format!("{name} is left out: its recording is not there")),
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    let slowest = rows.iter().filter_map(|row: &ReportRow| row.values[0]).map(|silent| silent.median);
    let slowest = slowest.fold(0.0, f64::max);
    let result = if slowest <= 25.0 { "met" } else { "NOT met" };
    notes.push(format!(
        "goal: a million events in at most 25 ms, silent; the slowest takes {slowest:.1} ms a million requests: {result}"
    ));
    notes.push("fake device; each turn after one replay to warm up; a request is an allocation, a free or a use by another stream; reading the file is not \
                counted, 24 configurations are counted as 24 times the requests; the ratio is recorded over silent"
        .to_owned());
    Ok(Section {
        rows,
        notes,
        ..Section::new(
            "replay",
            "Replays of recorded programs",
            "ms a million requests",
            ["silent", "recorded", "24 configurations, silent"],
        )
    })
}

fn row(
    name: &str,
    workload: &blockyard_workload::Workload,
    configs: &[AllocatorConfig],
    rounds: usize,
) -> Result<ReportRow> {
    let capacity = Bytes::new(CAPACITY);
    let plan = PreparedWorkload::new(workload);
    let settings = RunSettings { title: name.to_owned(), config: AllocatorConfig::default(), capacity };
    let mut go_on = |_| ControlFlow::Continue(());
    let silent = totals(&plan, &settings.config, VirtualDevice::new(capacity), &mut go_on)?;
    let recorded = run(workload, &settings, &mut go_on)?;
    let end = recorded.state_at(recorded.event_count())?;
    ensure!(silent.stats == *end.stats(), "{name}: the recorded run has other statistics");
    drop(recorded);

    let times = u32::try_from(REQUESTS_A_TURN.div_ceil(plan.len().max(1)))?;
    let nanos = alternate(rounds, times, 1, &mut [0, 1, 2], |way, times| {
        let begun = Instant::now();
        let mut plans = 0;
        for _ in 0..times {
            plans += match way {
                0 => {
                    totals(&plan, &settings.config, VirtualDevice::new(capacity), &mut go_on)?;
                    1
                }
                1 => {
                    run(workload, &settings, &mut go_on)?;
                    1
                }
                _ => sweep(&plan, configs, || VirtualDevice::new(capacity), &mut go_on)?.len(),
            };
        }
        // The time is scaled to one run of the plan.
        anyhow::Ok(begun.elapsed() * times / u32::try_from(plans)?)
    })?;
    let millis: Vec<Vec<f64>> = nanos
        .iter()
        .map(|nanos| nanos.iter().map(|nanos| per_million(*nanos, plan.len())).collect())
        .collect();
    Ok(ReportRow::new(name, plan.len(), &millis).with_ratio(Measurement::ratio(&millis[1], &millis[0])))
}

/// Milliseconds a million requests, where `nanos` were spent on `requests`.
#[expect(clippy::cast_precision_loss, reason = "a count of requests")]
fn per_million(nanos: f64, requests: usize) -> f64 {
    Duration::from_secs_f64(nanos / 1e9).as_secs_f64() * 1e3 * 1e6 / requests.max(1) as f64
}

/// 24 configurations that people try.
fn configurations() -> Result<Vec<AllocatorConfig>> {
    let mut configs = Vec::new();
    for segments in ["", "expandable_segments:True,"] {
        for limit in ["", "max_split_size_mb:64,", "max_split_size_mb:128,", "max_split_size_mb:512,"] {
            for rounding in ["", "roundup_power2_divisions:4,", "roundup_power2_divisions:8,"] {
                let text = format!("{segments}{limit}{rounding}");
                configs.push(AllocatorConfig::parse(text.trim_end_matches(','), Release::default())?);
            }
        }
    }
    ensure!(configs.len() == 24, "there are {} configurations", configs.len());
    Ok(configs)
}
