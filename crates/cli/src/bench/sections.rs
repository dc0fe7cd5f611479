//! What is measured. In each round every contender has its turn, so that a slow moment of the machine meets all.

use std::time::{Duration, Instant};

use blockyard_record::{Bytes, StreamId};
use blockyard_replay::Progress;

use crate::bench::contenders::{Contender, Device, all};
use crate::bench::measure::{Measure, count_for_turn, nanos_each};
use crate::bench::report::Row;
use crate::bench::trace::Trace;
use crate::progress::Bar;

#[derive(Debug)]
pub(crate) struct BenchPlan {
    pub(crate) rounds: u32,
    pub(crate) traces: Vec<Trace>,
}

const HIT: &str = "cache hit, a pair";
const MISS: &str = "nothing cached, an allocation";
const EMPTY: &str = "empty cache, a segment or page";
const COLD: &str = "replay from nothing, an allocation with its free";
const WARM: &str = "replay with a warm cache, an allocation with its free";

const HIT_SIZES: [Bytes; 5] = [Bytes::new(512), Bytes::kib(64), Bytes::mib(1), Bytes::mib(4), Bytes::mib(64)];
/// Each needs a segment, or pages, of its own.
const MISS_SIZES: [Bytes; 3] = [Bytes::mib(20), Bytes::mib(64), Bytes::mib(256)];
/// Segments that are given back at once, and their size: a page of an expandable segment too.
const EMPTIED: u32 = 32;
const PAGE: Bytes = Bytes::mib(20);
/// A contender that needs more than this for a replay has fewer turns.
const LONG_REPLAY: Duration = Duration::from_secs(1);
const LONG_REPLAY_TURNS: u32 = 2;

pub(crate) fn measure<D: Device>(
    plan: &BenchPlan,
    open: &dyn Fn() -> anyhow::Result<D>,
    bar: &Bar,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let slots = plan.traces.iter().map(|trace| trace.slots).max().unwrap_or(0).max(EMPTIED as usize + 1);
    let mut contenders = all(open)?;
    for contender in &mut contenders {
        contender.make_slots(slots);
    }
    let total = HIT_SIZES.len() + MISS_SIZES.len() + 1 + 2 * plan.traces.len();
    let tell = |done: usize, phase: &str| {
        let _ = bar.report(&Progress { phase: phase.to_owned(), done: done as u64, total: total as u64 });
    };
    for size in HIT_SIZES {
        tell(rows.len() / contenders.len(), HIT);
        rows.extend(hits(&mut contenders, size, plan.rounds)?);
    }
    for size in MISS_SIZES {
        tell(HIT_SIZES.len(), MISS);
        rows.extend(misses(&mut contenders, size, plan.rounds)?);
    }
    tell(HIT_SIZES.len() + MISS_SIZES.len(), EMPTY);
    rows.extend(empties(&mut contenders, plan.rounds)?);
    for (index, trace) in plan.traces.iter().enumerate() {
        tell(total - 2 * (plan.traces.len() - index), COLD);
        rows.extend(replays(&mut contenders, trace, plan.rounds)?);
    }
    Ok(rows)
}

/// Takes turns and gives one row a contender; `turn` returns nanoseconds, or nothing where a contender has no such thing.
fn take_turns(
    contenders: &mut [Box<dyn Contender>],
    (section, what): (&'static str, String),
    rounds: u32,
    mut turn: impl FnMut(usize, &mut dyn Contender) -> anyhow::Result<Option<f64>>,
) -> anyhow::Result<Vec<Row>> {
    let mut values = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        for (index, contender) in contenders.iter_mut().enumerate() {
            values[index].extend(turn(index, contender.as_mut())?);
        }
    }
    let rows = contenders.iter().zip(values).filter_map(|(contender, values)| {
        let turns = values.len();
        let nanos = Measure::of(values)?;
        Some(Row { section, what: what.clone(), contender: contender.name(), nanos, turns })
    });
    Ok(rows.collect())
}

fn hits(contenders: &mut [Box<dyn Contender>], size: Bytes, rounds: u32) -> anyhow::Result<Vec<Row>> {
    const TRIAL: u32 = 16;
    let mut counts = Vec::new();
    for contender in contenders.iter_mut() {
        contender.time_pairs(size, TRIAL)?;
        counts.push(count_for_turn(contender.time_pairs(size, TRIAL)?, TRIAL));
    }
    let rows = take_turns(contenders, (HIT, size.to_string()), rounds, |index, contender| {
        Ok(Some(nanos_each(contender.time_pairs(size, counts[index])?, counts[index])))
    })?;
    contenders.iter_mut().try_for_each(|contender| contender.empty())?;
    Ok(rows)
}

fn misses(contenders: &mut [Box<dyn Contender>], size: Bytes, rounds: u32) -> anyhow::Result<Vec<Row>> {
    const EACH: u32 = 8;
    // A range of addresses goes with its last block: this one keeps it, so that only pages are made.
    const ANCHOR: usize = EACH as usize;
    take_turns(contenders, (MISS, size.to_string()), rounds, |_, contender| {
        contender.empty()?;
        if contender.expands() {
            contender.allocate(ANCHOR, PAGE, StreamId::DEFAULT)?;
        }
        let begun = Instant::now();
        for slot in 0..EACH as usize {
            contender.allocate(slot, size, StreamId::DEFAULT)?;
        }
        let took = begun.elapsed();
        for slot in 0..EACH as usize {
            contender.free(slot)?;
        }
        if contender.expands() {
            contender.free(ANCHOR)?;
        }
        contender.empty()?;
        Ok(Some(nanos_each(took, EACH)))
    })
}

fn empties(contenders: &mut [Box<dyn Contender>], rounds: u32) -> anyhow::Result<Vec<Row>> {
    take_turns(contenders, (EMPTY, format!("{EMPTIED} of {PAGE}")), rounds, |_, contender| {
        for slot in 0..EMPTIED as usize {
            contender.allocate(slot, PAGE, StreamId::DEFAULT)?;
        }
        let begun = Instant::now();
        let mut took = Duration::ZERO;
        for slot in 0..EMPTIED as usize {
            contender.free(slot)?;
        }
        if contender.caches() {
            let begun = Instant::now();
            contender.empty()?;
            took += begun.elapsed();
        } else {
            took += begun.elapsed();
        }
        Ok(Some(nanos_each(took, EMPTIED)))
    })
}

fn replays(contenders: &mut [Box<dyn Contender>], trace: &Trace, rounds: u32) -> anyhow::Result<Vec<Row>> {
    let mut turns = vec![0; contenders.len()];
    let mut is_long = vec![false; contenders.len()];
    let mut timed = |index: usize, contender: &mut dyn Contender| {
        turns[index] += 1;
        if is_long[index] && turns[index] > LONG_REPLAY_TURNS {
            return Ok(None);
        }
        let took = contender.time_replay(trace)?;
        is_long[index] = took > LONG_REPLAY;
        anyhow::Ok(Some(nanos_each(took, trace.allocations)))
    };
    let cold = take_turns(contenders, (COLD, trace.name.clone()), rounds, |index, contender| {
        contender.empty()?;
        timed(index, contender)
    })?;
    // The cache is as the last cold turn left it.
    let warm = take_turns(contenders, (WARM, trace.name.clone()), rounds, |index, contender| {
        if contender.caches() { timed(index, contender) } else { Ok(None) }
    })?;
    contenders.iter_mut().try_for_each(|contender| contender.empty())?;
    Ok([cold, warm].concat())
}
