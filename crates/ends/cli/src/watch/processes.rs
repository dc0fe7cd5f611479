//! What the watched processes of one host share: one line for a step of all ranks, the signal before a failure,
//! and the moment when one of them ran out of memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use blockyard_watch::DeviceStep;

use super::live::LivePrograms;
use super::stop::Stop;
use super::text;

/// How many steps wait for a slow rank; the oldest is printed without it.
const MAX_WAITING: usize = 100;

/// All watched processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// Where ranks find what is known of them; empty in tests.
    pub(super) folder: PathBuf,
    /// `None` where no signal was asked for.
    pub(super) stop: Option<Stop>,
    /// `None` where no page is served.
    pub(super) live: Option<Arc<LivePrograms>>,
    ranks: Mutex<Ranks>,
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct Ranks {
    running: BTreeSet<String>,
    steps: BTreeMap<u64, BTreeMap<String, Vec<DeviceStep>>>,
}

impl Processes {
    /// The processes get a signal, if there is a `stop`, and the page gets them, if there is a `live` one.
    pub(super) fn new(folder: &Path, stop: Option<Stop>, live: Option<Arc<LivePrograms>>) -> Self {
        Self { folder: folder.to_owned(), stop, live, ..Self::default() }
    }

    /// A rank was seen.
    pub(super) fn add_rank(&self, name: &str) {
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner).running.insert(name.to_owned());
    }

    /// A rank has ended. Returns the lines of the steps that waited for this rank alone.
    pub(super) fn remove_rank(&self, name: &str) -> Vec<String> {
        let mut ranks = self.ranks.lock().unwrap_or_else(PoisonError::into_inner);
        ranks.running.remove(name);
        ranks.lines()
    }

    /// A rank has ended a step. Returns the lines to print; `None` if the rank is alone, or the process no rank.
    pub(super) fn note_step(&self, name: &str, number: u64, steps: &[DeviceStep]) -> Option<Vec<String>> {
        let mut ranks = self.ranks.lock().unwrap_or_else(PoisonError::into_inner);
        if ranks.running.len() < 2 || !ranks.running.contains(name) {
            return None;
        }
        ranks.steps.entry(number).or_default().insert(name.to_owned(), steps.to_vec());
        Some(ranks.lines())
    }

    /// A process ran out of memory: so many times any has.
    pub(super) fn note_failure(&self) -> u64 {
        self.failures.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How many times any process ran out of memory.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

impl Ranks {
    /// The steps that no running rank is still in.
    fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(first) = self.steps.first_entry() {
            let is_whole = self.running.iter().all(|name| first.get().contains_key(name));
            if !is_whole && self.steps.len() <= MAX_WAITING {
                break;
            }
            if let Some((number, ranks)) = self.steps.pop_first() {
                lines.push(text::ranks(number, &ranks));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use blockyard_record::Bytes;

    use super::*;

    fn step(allocated: u64, growth: i64) -> Vec<DeviceStep> {
        let line = Some(("main train.py:12".to_owned(), growth.unsigned_abs()));
        let [peak_allocated, peak_reserved] = [Bytes::mib(allocated), Bytes::mib(allocated + 20)];
        let growth = Some(growth);
        let of =
            DeviceStep { peak_allocated, peak_reserved, growth, growing_line: line, ..DeviceStep::default() };
        vec![of]
    }

    #[test]
    fn a_step_of_all_ranks_is_one_line() {
        let processes = Processes::default();
        processes.add_rank("rank0");
        assert_eq!(processes.note_step("rank0", 1, &step(100, 0)), None);
        processes.add_rank("rank1");
        assert_eq!(processes.note_step("process3", 2, &step(100, 0)), None);
        assert_eq!(processes.note_step("rank0", 2, &step(100, 1 << 20)), Some(Vec::new()));
        let line = "step 2, 2 ranks: peak 100 MiB to 130 MiB (rank1) allocated, 120 MiB to 150 MiB (rank1) reserved; \
                    grew most: rank0 by 1 MiB, 1 MiB of main train.py:12";
        assert_eq!(processes.note_step("rank1", 2, &step(130, 0)), Some(vec![line.to_owned()]));
        // A rank that has ended is not waited for.
        assert_eq!(processes.note_step("rank1", 3, &step(130, 0)), Some(Vec::new()));
        let line = "step 3, 1 rank: peak 130 MiB allocated, 150 MiB reserved; none grew";
        assert_eq!(processes.remove_rank("rank0"), [line]);
    }

    #[test]
    fn a_slow_rank_is_not_waited_for_without_end() {
        let processes = Processes::default();
        for name in ["rank0", "rank1"] {
            processes.add_rank(name);
        }
        let lines = (1..=150).map(|number| processes.note_step("rank0", number, &step(1, 0)).unwrap().len());
        assert_eq!(lines.sum::<usize>(), 50);
    }
}
