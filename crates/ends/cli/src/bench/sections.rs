//! The measurements. In each round every contender has its turn, so that a slow moment of the machine meets
//! all contenders.

use std::time::{Duration, Instant};

use blockyard_measure::{OperationList, ReportRow, Section, count_for_turn, per_unit, take_turns};
use blockyard_record::{Bytes, StreamId};
use blockyard_replay::Progress;

use crate::bench::contenders::{BoxedContender, Device, all};
use crate::progress::Bar;

#[derive(Debug)]
pub(crate) struct BenchPlan {
    pub(crate) rounds: usize,
    pub(crate) traces: Vec<OperationList>,
}

const HIT_SIZES: [Bytes; 5] = [Bytes::new(512), Bytes::kib(64), Bytes::mib(1), Bytes::mib(4), Bytes::mib(64)];
/// Sizes of which each request needs a segment or pages of the device.
const MISS_SIZES: [Bytes; 3] = [Bytes::mib(20), Bytes::mib(64), Bytes::mib(256)];
/// How many segments are released at once, and their size, which is also that of a page of an expandable
/// segment.
const EMPTIED: usize = 32;
const PAGE: Bytes = Bytes::mib(20);
/// A contender that needs more than this for a replay has fewer turns.
const LONG_REPLAY: Duration = Duration::from_secs(1);
const LONG_REPLAY_TURNS: u32 = 2;

pub(crate) fn measure<D: Device>(
    plan: &BenchPlan,
    open: &dyn Fn() -> anyhow::Result<D>,
    bar: &Bar,
) -> anyhow::Result<Vec<Section>> {
    let slots = plan.traces.iter().map(|trace| trace.slots as usize).max().unwrap_or(0);
    let mut contenders = all(open)?;
    for contender in &mut contenders {
        contender.make_slots(slots.max(EMPTIED + 1));
    }
    let mut bench = Bench { rounds: plan.rounds, contenders, sections: Vec::new() };
    let total = HIT_SIZES.len() + MISS_SIZES.len() + 1 + plan.traces.len();
    let report = |bench: &Bench, phase: &str| {
        let done: usize = bench.sections.iter().map(|section| section.rows.len()).sum();
        let _ = bar.report(&Progress { phase: phase.to_owned(), done: done as u64, total: total as u64 });
    };
    bench.begin("hits", "cache hit", "ns a pair of allocation and free");
    for size in HIT_SIZES {
        report(&bench, "cache hits");
        bench.hits(size)?;
    }
    bench.begin("misses", "nothing cached", "ns an allocation");
    for size in MISS_SIZES {
        report(&bench, "misses");
        bench.misses(size)?;
    }
    bench.begin("empty_cache", "empty cache", "ns a segment or page");
    report(&bench, "empty cache");
    bench.empties()?;
    if !plan.traces.is_empty() {
        bench.begin("replay_cold", "replay from nothing", "ns an allocation with its free");
        bench.begin("replay_warm", "replay with a warm cache", "ns an allocation with its free");
    }
    for trace in &plan.traces {
        report(&bench, "replays");
        bench.replays(trace)?;
    }
    Ok(bench.sections)
}

struct Bench {
    rounds: usize,
    contenders: Vec<BoxedContender>,
    sections: Vec<Section>,
}

impl Bench {
    fn begin(&mut self, name: &str, title: &str, unit: &str) {
        let contenders = self.contenders.iter().map(|contender| contender.name().to_owned()).collect();
        let section = Section::new(name, title, unit, []);
        self.sections.push(Section { contenders, has_multiples: true, ..section });
    }

    /// Lets the contenders take turns, and adds a row with their values to the section that is `before`
    /// sections before the newest one.
    fn row(
        &mut self,
        before: usize,
        name: &str,
        turn: impl FnMut(usize, &mut BoxedContender) -> anyhow::Result<Option<f64>>,
    ) -> anyhow::Result<()> {
        let values = take_turns(self.rounds, &mut self.contenders, turn)?;
        if let Some(section) = self.sections.iter_mut().rev().nth(before) {
            section.rows.push(ReportRow::new(name, 1, &values));
        }
        Ok(())
    }

    fn empty_caches(&mut self) -> anyhow::Result<()> {
        self.contenders.iter_mut().try_for_each(|contender| contender.empty_cache())
    }

    fn hits(&mut self, size: Bytes) -> anyhow::Result<()> {
        const TRIAL: u32 = 16;
        let mut counts = Vec::new();
        for contender in &mut self.contenders {
            contender.time_pairs(size, TRIAL)?;
            counts.push(count_for_turn(contender.time_pairs(size, TRIAL)?, TRIAL));
        }
        self.row(0, &size.to_string(), |index, contender| {
            Ok(Some(per_unit(contender.time_pairs(size, counts[index])?, counts[index] as usize)))
        })?;
        self.empty_caches()
    }

    fn misses(&mut self, size: Bytes) -> anyhow::Result<()> {
        const EACH: usize = 8;
        // A range of addresses is released with its last block: this block keeps the range, so that only
        // pages are mapped.
        const ANCHOR: usize = EACH;
        self.row(0, &size.to_string(), |_, contender| {
            contender.empty_cache()?;
            if contender.expands() {
                contender.allocate(ANCHOR, PAGE, StreamId::DEFAULT)?;
            }
            let begun = Instant::now();
            for slot in 0..EACH {
                contender.allocate(slot, size, StreamId::DEFAULT)?;
            }
            let took = begun.elapsed();
            for slot in 0..EACH {
                contender.free(slot)?;
            }
            if contender.expands() {
                contender.free(ANCHOR)?;
            }
            contender.empty_cache()?;
            Ok(Some(per_unit(took, EACH)))
        })
    }

    fn empties(&mut self) -> anyhow::Result<()> {
        self.row(0, &format!("{EMPTIED} of {PAGE}"), |_, contender| {
            for slot in 0..EMPTIED {
                contender.allocate(slot, PAGE, StreamId::DEFAULT)?;
            }
            let mut begun = Instant::now();
            for slot in 0..EMPTIED {
                contender.free(slot)?;
            }
            // Without a cache, the frees release the segments.
            if contender.caches() {
                begun = Instant::now();
                contender.empty_cache()?;
            }
            Ok(Some(per_unit(begun.elapsed(), EMPTIED)))
        })
    }

    fn replays(&mut self, trace: &OperationList) -> anyhow::Result<()> {
        let mut turns = vec![0; self.contenders.len()];
        let mut is_long = vec![false; self.contenders.len()];
        let mut timed = |index: usize, contender: &mut BoxedContender| {
            turns[index] += 1;
            if is_long[index] && turns[index] > LONG_REPLAY_TURNS {
                return Ok(None);
            }
            let took = contender.time_replay(trace, 1)?;
            is_long[index] = took > LONG_REPLAY;
            anyhow::Ok(Some(per_unit(took, trace.pairs())))
        };
        self.row(1, &trace.name, |index, contender| {
            contender.empty_cache()?;
            timed(index, contender)
        })?;
        // The cache has the memory of the last cold turn.
        self.row(
            0,
            &trace.name,
            |index, contender| {
                if contender.caches() { timed(index, contender) } else { Ok(None) }
            },
        )?;
        self.empty_caches()
    }
}
