//! Programs of several processes: the ranks that are asked for run side by side, and the store answers for
//! all others.

mod answers;
mod store;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use blockyard_hooks::variables;
use blockyard_record::{Bytes, counted};

pub use self::store::StoreServer;
use crate::run::RunningProgram;
use crate::{DryRunError, EstimateNote, LibraryFolder, Program, Report, Torch};

/// How long the other ranks may run after one failed: they may fail by themselves, and then report why.
const MAX_WAIT_AFTER_FAILURE: Duration = Duration::from_secs(3);
/// How long ranks may take to count their memory after the signal to end.
const MAX_WAIT_FOR_COUNTS: Duration = Duration::from_secs(12);
/// The time between two looks at the processes.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The exit status of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;
/// The exception that Python raises for Ctrl-C.
const INTERRUPT: &str = "KeyboardInterrupt";

/// The processes of a program, as `torchrun` numbers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    nodes: u32,
    per_node: u32,
    running: Vec<u32>,
}

/// The error for a rank that the program does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no rank {rank}: the ranks are 0 to {}", world.saturating_sub(1))]
pub struct RankError {
    /// The rank that was asked for.
    pub rank: u32,
    /// How many ranks the program has.
    pub world: u32,
}

impl Ranks {
    /// The ranks of this many nodes with this many processes each. The ranks in `asked` run; where it is
    /// empty, all ranks of one node, or rank 0 of several nodes.
    ///
    /// # Errors
    ///
    /// A rank in `asked` that the program does not have.
    pub fn new(nodes: u32, per_node: u32, asked: &[u32]) -> Result<Self, RankError> {
        let (nodes, per_node) = (nodes.max(1), per_node.max(1));
        let world = nodes.saturating_mul(per_node);
        if let Some(rank) = asked.iter().copied().find(|rank| *rank >= world) {
            return Err(RankError { rank, world });
        }
        let mut asked = match asked {
            [] if nodes == 1 => (0..world).collect(),
            [] => vec![0],
            asked => asked.to_vec(),
        };
        asked.sort_unstable();
        asked.dedup();
        Ok(Self { nodes, per_node, running: asked })
    }

    /// How many ranks the program has.
    pub fn world_size(&self) -> u32 {
        self.nodes.saturating_mul(self.per_node)
    }

    /// How many nodes the program runs on.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// How many processes a node has, which is also how many devices.
    pub fn per_node(&self) -> u32 {
        self.per_node
    }

    /// The ranks that run, in ascending order.
    pub fn running(&self) -> &[u32] {
        &self.running
    }

    /// The number of a rank in its node, which is the device that most programs take.
    pub fn local_rank(&self, rank: u32) -> u32 {
        rank % self.per_node
    }

    /// The variables that `torchrun` sets for a rank, whose store is on this port.
    pub fn environment(&self, rank: u32, port: u16) -> Vec<(String, String)> {
        let world = self.world_size().to_string();
        let mut variables = vec![
            ("RANK", rank.to_string()),
            ("LOCAL_RANK", self.local_rank(rank).to_string()),
            ("GROUP_RANK", (rank / self.per_node).to_string()),
            ("ROLE_RANK", rank.to_string()),
            ("ROLE_NAME", "default".to_owned()),
            ("WORLD_SIZE", world.clone()),
            ("LOCAL_WORLD_SIZE", self.per_node.to_string()),
            ("GROUP_WORLD_SIZE", self.nodes.to_string()),
            ("ROLE_WORLD_SIZE", world),
            ("MASTER_ADDR", "127.0.0.1".to_owned()),
            ("MASTER_PORT", port.to_string()),
            ("TORCHELASTIC_RESTART_COUNT", "0".to_owned()),
            ("TORCHELASTIC_MAX_RESTARTS", "0".to_owned()),
            ("TORCHELASTIC_RUN_ID", "none".to_owned()),
            // The store's server is not in rank 0.
            ("TORCHELASTIC_USE_AGENT_STORE", "True".to_owned()),
            ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1".to_owned()),
            // For the stand-in, and for the runner.
            (variables::STORE, format!("127.0.0.1:{port}")),
            (variables::RANKS, self.running.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")),
        ];
        if self.per_node > 1 && std::env::var_os("OMP_NUM_THREADS").is_none() {
            variables.push(("OMP_NUM_THREADS", "1".to_owned()));
        }
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The file of a rank, where one file was named for all ranks: the name gets the rank's number.
    pub fn path(&self, path: &Path, rank: u32) -> PathBuf {
        if self.running.len() == 1 {
            return path.to_owned();
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let ending =
            path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
        path.with_file_name(format!("{stem}.rank{rank}{ending}"))
    }
}

/// The memory of a rank.
#[derive(Clone, Debug)]
pub struct RankReport {
    /// The number of the rank.
    pub rank: u32,
    /// The memory that the process of the rank took.
    pub report: Report,
}

/// The memory that the ranks of a program took.
#[derive(Clone, Debug)]
pub struct RanksReport {
    /// The ranks that ran, in ascending order.
    pub ranks: Vec<RankReport>,
    /// The rank that failed first; `None` where the run was interrupted before.
    pub first_failed: Option<u32>,
    /// Whether the run was interrupted, and the ranks ended for that.
    pub is_interrupted: bool,
}

impl RanksReport {
    /// The rank whose peak reserved is the largest, the lowest of several; `None` where none ran.
    pub fn largest(&self) -> Option<&RankReport> {
        let peak = |rank: &&RankReport| -> Bytes { rank.report.peak_reserved() };
        self.ranks.iter().rev().max_by_key(peak)
    }

    /// The exit status of the rank that failed first, that of Ctrl-C where the run was interrupted, or 0.
    pub fn status(&self) -> i32 {
        if self.is_interrupted {
            return INTERRUPTED;
        }
        let failed = self.ranks.iter().find(|rank| Some(rank.rank) == self.first_failed);
        failed.map_or(0, |rank| rank.report.status)
    }
}

/// Runs the ranks that are asked for to their ends. After one fails, or once `is_interrupted` is true, the
/// others are ended.
///
/// `program` is the program of a rank, without torchrun's variables, which are added.
///
/// # Errors
///
/// A port that is taken, a Python that does not start, and files that cannot be written.
pub fn run_ranks(
    ranks: &Ranks,
    port: Option<u16>,
    program: impl Fn(u32) -> Program,
    torch: &Torch,
    prepared: &LibraryFolder,
    is_interrupted: impl Fn() -> bool,
) -> Result<RanksReport, DryRunError> {
    let store = StoreServer::start(port, ranks.running(), ranks.world_size())
        .map_err(|error| DryRunError::Port { port, error })?;
    let mut running = RankProcesses { processes: Vec::new() };
    for rank in ranks.running() {
        let mut program = program(*rank);
        program.environment.extend(ranks.environment(*rank, store.port()));
        running.processes.push((*rank, RunningProgram::start(program, torch, prepared)?));
    }
    let mut failed = running.wait(&store, &is_interrupted)?;
    let assumed = assumed(&store, ranks);
    let mut reports = Vec::new();
    for (rank, started) in std::mem::take(&mut running.processes) {
        let mut report = started.finish(torch)?;
        report.notes.extend(assumed.clone());
        if let Some(failed) = failed.filter(|failed| *failed != rank && report.status != 0) {
            report.remarks.push(format!("rank {rank} was stopped or failed after rank {failed} had failed"));
        }
        reports.push(RankReport { rank, report });
    }
    // A rank may be seen to end for the Ctrl-C before the command sees the Ctrl-C itself.
    let is_by_interrupt = |rank: &RankReport| rank.report.error.as_deref() == Some(INTERRUPT);
    let ended = reports.iter().find(|rank| Some(rank.rank) == failed);
    let is_interrupted = is_interrupted()
        && reports.iter().any(|rank| rank.report.status != 0)
        && ended.is_none_or(is_by_interrupt);
    if is_interrupted {
        failed = None;
    }
    Ok(RanksReport { ranks: reports, first_failed: failed, is_interrupted })
}

/// The assumption about keys that the program read in the store and that only a rank which does not run would
/// have set; `None` where no such key was read.
fn assumed(store: &StoreServer, ranks: &Ranks) -> Option<EstimateNote> {
    let keys = store.assumed();
    let first = keys.first()?;
    let running: Vec<String> = ranks.running().iter().map(ToString::to_string).collect();
    Some(EstimateNote::estimate(format!(
        "the program reads {} of the store that ranks which do not run would have set (the first is {first}): assumed to be \
         those of rank {}",
        counted(keys.len(), "key"),
        running.join(", ")
    )))
}

/// The processes of the ranks that run. They end when this value is dropped.
struct RankProcesses {
    processes: Vec<(u32, RunningProgram)>,
}

impl RankProcesses {
    /// Waits for all processes; returns the rank that failed first.
    fn wait(
        &mut self,
        store: &StoreServer,
        is_interrupted: &impl Fn() -> bool,
    ) -> Result<Option<u32>, DryRunError> {
        let mut failed = None;
        // When the others get the signal to end, and when they are killed.
        let mut ends: Option<(Instant, bool)> = None;
        loop {
            let mut is_running = false;
            for (rank, started) in &mut self.processes {
                if started.has_ended() {
                    continue;
                }
                match started.poll()? {
                    None => is_running = true,
                    Some(is_well) => {
                        store.leave(*rank);
                        if !is_well && !is_interrupted() {
                            failed.get_or_insert(*rank);
                        }
                    }
                }
            }
            if !is_running {
                return Ok(failed);
            }
            if ends.is_none() && (failed.is_some() || is_interrupted()) {
                ends = Some((Instant::now() + MAX_WAIT_AFTER_FAILURE, false));
            }
            if let Some((_, was_asked)) = ends.filter(|(at, _)| Instant::now() >= *at) {
                for (_, started) in &mut self.processes {
                    started.end(was_asked);
                }
                ends = Some((Instant::now() + MAX_WAIT_FOR_COUNTS, true));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for RankProcesses {
    fn drop(&mut self) {
        for (_, started) in &mut self.processes {
            started.end(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use blockyard_record::Bytes;

    use super::{RankError, RankReport, Ranks, RanksReport};
    use crate::{DeviceReport, Report};

    #[test]
    fn ranks_are_numbered_as_torchrun_does() {
        let ranks = Ranks::new(8, 8, &[63, 0, 7]).unwrap();
        assert_eq!((ranks.world_size(), ranks.running()), (64, &[0, 7, 63][..]));
        let variables = ranks.environment(63, 2950);
        let value =
            |name: &str| variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        for (name, expected) in [
            ("RANK", "63"),
            ("LOCAL_RANK", "7"),
            ("GROUP_RANK", "7"),
            ("WORLD_SIZE", "64"),
            ("LOCAL_WORLD_SIZE", "8"),
            ("GROUP_WORLD_SIZE", "8"),
            ("MASTER_ADDR", "127.0.0.1"),
            ("MASTER_PORT", "2950"),
            ("TORCHELASTIC_USE_AGENT_STORE", "True"),
        ] {
            assert_eq!(value(name), Some(expected), "{name}");
        }
    }

    #[test]
    fn all_of_one_node_run_and_one_of_several() {
        assert_eq!(Ranks::new(1, 3, &[]).unwrap().running(), [0, 1, 2]);
        assert_eq!(Ranks::new(2, 3, &[]).unwrap().running(), [0]);
        assert_eq!(Ranks::new(2, 3, &[6]), Err(RankError { rank: 6, world: 6 }));
        let two = Ranks::new(1, 2, &[]).unwrap();
        assert_eq!(two.path(Path::new("a/b.pickle"), 1), PathBuf::from("a/b.rank1.pickle"));
        assert_eq!(Ranks::new(1, 2, &[1]).unwrap().path(Path::new("b.pickle"), 1), PathBuf::from("b.pickle"));
    }

    #[test]
    fn the_largest_is_the_lowest_of_equal_ranks() {
        let rank = |rank, peak: u64| {
            let device = DeviceReport { peak_reserved: Bytes::new(peak), ..DeviceReport::default() };
            RankReport { rank, report: Report { devices: vec![device], status: 3, ..Report::default() } }
        };
        let report = RanksReport {
            ranks: vec![rank(0, 5), rank(1, 9), rank(7, 9)],
            first_failed: Some(7),
            is_interrupted: false,
        };
        assert_eq!((report.largest().map(|largest| largest.rank), report.status()), (Some(1), 3));
        let interrupted = RanksReport { first_failed: None, is_interrupted: true, ..report };
        assert_eq!(interrupted.status(), 130);
    }
}
