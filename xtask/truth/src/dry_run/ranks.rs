//! Programs of several ranks: all side by side, and each alone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use blockyard_dry_run::{Program, Ranks, run_ranks};
use blockyard_hooks::variables;

use super::{Comparison, RecordedProgram, compared, prepare_driver, read_done, read_recorded};
use crate::installed::InstalledTorch;

/// The ranks of a recorded program, each with its file; the ranks are those of one node.
pub(super) struct RankJob {
    /// The file's path without rank and ending.
    pub(super) program: String,
    pub(super) ranks: Vec<(u32, PathBuf)>,
}

/// The program and the rank that a file is of, by its name: `NAME.RANK.json.gz`.
pub(super) fn program_of(file: &Path) -> Option<(String, u32)> {
    let path = file.to_str()?.strip_suffix(".json.gz")?;
    let (program, rank) = path.rsplit_once('.')?;
    Some((program.to_owned(), rank.parse().ok()?))
}

impl RankJob {
    /// Dry-runs the recorded ranks and compares each with its recording; a name and a comparison for each.
    pub(super) fn compare(&self, installed: &InstalledTorch) -> Result<Vec<(String, Comparison)>> {
        let mut recorded = Vec::new();
        for (rank, file) in &self.ranks {
            recorded.push((*rank, read_recorded(file)?));
        }
        let all: Vec<u32> = recorded.iter().map(|(rank, _)| *rank).collect();
        let world = all.iter().max().map_or(1, |rank| rank + 1);
        let name = Path::new(&self.program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let run = |asked: &[u32], environment: &[(String, String)]| -> Result<Vec<Comparison>> {
            let ranks = Ranks::new(1, world, asked)?;
            let mut drivers = Vec::new();
            for (rank, recorded) in recorded.iter().filter(|(rank, _)| asked.contains(rank)) {
                let (program, out) = prepare_driver(recorded, &format!("{name}.{rank}"), installed)?;
                let _ = fs::remove_file(&out);
                let program = Program { devices: world, environment: environment.to_vec(), ..program };
                drivers.push((*rank, recorded, program, out));
            }
            let program =
                |rank: u32| drivers.iter().find(|driver| driver.0 == rank).map(|driver| driver.2.clone());
            let any = drivers.first().map(|driver| driver.2.clone()).context("no rank is asked for")?;
            let report = run_ranks(
                &ranks,
                None,
                |rank| program(rank).unwrap_or_else(|| any.clone()),
                &installed.torch,
                &installed.prepared,
                || false,
            )?;
            let mut found = Vec::new();
            for (done, (_, recorded, _, out)) in report.ranks.iter().zip(&drivers) {
                let recorded: &RecordedProgram = recorded;
                found.push(compared(recorded, &done.report, &read_done(out, done.report.status)?));
            }
            Ok(found)
        };
        let mut rows = Vec::new();
        let alone = all.iter().map(|rank| vec![*rank]);
        for asked in std::iter::once(all.clone()).chain(alone) {
            let mut found = run(&asked, &[])?;
            for order in ["falling", "rising"] {
                if found.iter().all(|found| found.lines.is_whole() || !found.notes.is_empty()) {
                    break;
                }
                let other = run(&asked, &[(variables::ADDRESSES.to_owned(), order.to_owned())])?;
                for (found, other) in found.iter_mut().zip(&other).filter(|(found, _)| found.notes.is_empty())
                {
                    found.mark_addresses(!found.lines.is_whole() && other.text != found.text);
                }
            }
            let kind = if asked.len() == 1 { "alone" } else { "beside the others" };
            let named = asked.iter().map(|rank| format!("{name}, rank {rank} {kind}"));
            rows.extend(named.zip(found));
        }
        Ok(rows)
    }
}
