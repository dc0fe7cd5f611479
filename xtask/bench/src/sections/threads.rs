//! Two threads on two streams of one allocator.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use blockyard_measure::{Measurement, OperationList, ReportRow, Section, geometric_mean};

use super::{BenchContext, FAKE_DEVICE};
use crate::cores::pin;
use crate::native::{Libraries, Pass, Side};
use crate::suite::Suite;

/// How often a thread replays its trace in a turn.
const TIMES: u32 = 4;

/// Pairs of allocation and free in a second, in total: of one thread, and of two threads, each with its own
/// stream and core.
///
/// # Errors
///
/// When a library does not load, there is only one core, or an allocation fails.
pub(super) fn threads(context: &BenchContext) -> Result<Section> {
    ensure!(context.cores.len() > 1, "two threads need two cores, and there is one");
    let libraries = Libraries::load(&context.target)?;
    let suite = Suite::programs(&context.workspace)?;
    let program = suite.traces.into_iter().find(|trace| trace.name == "gpt2_varlen");
    let traces = [
        OperationList::ping_pong("pingpong_1KiB", 1 << 10, 100_000),
        OperationList::random_allocations("rmm_10k_1MiB", 10_000, 1 << 20),
        program.context("the recording gpt2_varlen is not there")?,
    ];
    let mut rows = Vec::new();
    let progress = super::progress("threads", traces.len() * 2)?;
    for trace in &traces {
        for count in [1, 2] {
            progress.set_message(format!("{}, {count} threads", trace.name));
            rows.push(row(&libraries, trace, count, context)?);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let [ours, theirs] = [0, 1].map(|contender| scaling(&rows, contender));
    Ok(Section {
        rows,
        notes: vec![
            FAKE_DEVICE.to_owned(),
            format!("two threads do {ours:.2} times what one does with Blockyard, {theirs:.2} times with PyTorch"),
            "what limits both: one lock for all streams; a second thread adds waiting for the lock, and moves the \
             allocator's data from core to core"
                .to_owned(),
        ],
        ..Section::new(
            "threads",
            "Threads, each on its own stream and core",
            "million pairs a second, all threads together",
            ["Blockyard", "PyTorch"],
        )
    })
}

/// The mean ratio of the pairs of two threads to those of one thread; rows come in pairs.
fn scaling(rows: &[ReportRow], contender: usize) -> f64 {
    let value = |row: &ReportRow| row.values.get(contender).copied().flatten().map(|value| value.median);
    let pairs = rows.chunks_exact(2).filter_map(|pair| Some(value(&pair[1])? / value(&pair[0])?));
    geometric_mean(&pairs.collect::<Vec<_>>())
}

fn row(
    libraries: &Libraries,
    trace: &OperationList,
    count: u16,
    context: &BenchContext,
) -> Result<ReportRow> {
    let traces: Vec<OperationList> = (0..count).map(|stream| trace.on_stream(stream)).collect();
    let mut millions = [Vec::new(), Vec::new()];
    for side in Side::BOTH {
        // The passes begin one after the other, so that all segments exist before the threads run: a device
        // is for one thread.
        let mut first = Pass::begin(libraries, side, &traces[0])?;
        first.warm(1)?;
        for other in &traces[1..] {
            Pass::beside(libraries, side, other, 0).warm(2)?;
        }
    }
    for round in 0..context.rounds {
        let order = if round % 2 == 0 { Side::BOTH } else { [Side::Theirs, Side::Ours] };
        for side in order {
            let took = turn(libraries, side, &traces, &context.cores)?;
            #[expect(clippy::cast_precision_loss, reason = "a count of operations")]
            let pairs = (trace.pairs() * traces.len() * TIMES as usize) as f64;
            millions[usize::from(side == Side::Theirs)].push(pairs / took.as_secs_f64() / 1e6);
        }
    }
    let name = format!("{}, {count} thread{}", trace.name, if count == 1 { "" } else { "s" });
    Ok(ReportRow::new(name, trace.pairs(), &millions)
        .with_ratio(Measurement::ratio(&millions[0], &millions[1])))
}

/// The time from the moment at which all threads are ready to the end of the last thread.
fn turn(libraries: &Libraries, side: Side, traces: &[OperationList], cores: &[usize]) -> Result<Duration> {
    let barrier = Barrier::new(traces.len());
    thread::scope(|scope| {
        let handles: Vec<_> = traces
            .iter()
            .zip(cores)
            .map(|(trace, core)| {
                let barrier = &barrier;
                scope.spawn(move || -> Result<(Instant, Instant)> {
                    pin(&[*core])?;
                    let mut pass = Pass::beside(libraries, side, trace, 0);
                    barrier.wait();
                    let begun = Instant::now();
                    pass.timed(TIMES)?;
                    Ok((begun, Instant::now()))
                })
            })
            .collect();
        let mut spans = Vec::new();
        for handle in handles {
            spans.push(handle.join().map_err(|_| anyhow!("a thread died"))??);
        }
        let begun = spans.iter().map(|(begun, _)| *begun).min();
        let ended = spans.iter().map(|(_, ended)| *ended).max();
        begun.zip(ended).map(|(begun, ended)| ended - begun).context("no thread ran")
    })
}
