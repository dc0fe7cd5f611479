//! The report as JSON: `docs/dry-run-json.md` has its fields, and `blockyard-answers` its types.

use blockyard_answers::{
    DryRunAnswer, DryRunChild, DryRunEstimateNote, DryRunGpu, DryRunHolder, DryRunLine, DryRunNonPytorch,
    DryRunPeaks, DryRunRank, DryRunRanks, DryRunResult, DryRunStep, VERSION,
};
use blockyard_gpus::GpuProfile;

use crate::{ChildPeak, GpuFit, Iteration, RankReport, Ranks, RanksReport, ReplayedOrders, Report};

impl Report {
    /// The report for JSON, with whether the program fits on these GPUs; the program saw the first.
    pub fn to_answer(&self, gpus: &[GpuProfile]) -> DryRunAnswer {
        DryRunAnswer { version: VERSION, run: self.fields(gpus), of_ranks: None }
    }

    fn fields(&self, gpus: &[GpuProfile]) -> DryRunResult {
        let peaks = self.devices.iter().zip(0..).map(|(device, at)| DryRunPeaks {
            device: at,
            allocated: device.peak_allocated,
            reserved: device.peak_reserved,
            allocated_at_end: device.allocated,
        });
        let non_pytorch = gpus.first().map(|gpu| self.non_pytorch(gpu)).unwrap_or_default();
        let non_pytorch = non_pytorch.into_iter().zip(0..).map(|(memory, device)| DryRunNonPytorch {
            device,
            parts: memory.parts.into_iter().map(|(what, bytes)| DryRunHolder { what, bytes }).collect(),
            unknown: memory.unknown,
        });
        let notes = self.notes.iter().map(|note| DryRunEstimateNote {
            kind: note.kind.name().to_owned(),
            text: note.sentence(),
            file: note.file.clone(),
            line: note.line,
        });
        let lines = self.lines.iter().map(|line| DryRunLine {
            text: line.text.clone(),
            exact: line.why.is_none(),
            why: line.why.clone(),
        });
        DryRunResult {
            exact: self.is_exact(),
            status: self.status,
            error: self.error.clone(),
            error_at: self.error_at.clone(),
            is_cut: self.is_cut,
            lines: lines.collect(),
            peaks: peaks.collect(),
            non_pytorch: non_pytorch.collect(),
            steps: self.iterations.iter().flat_map(step).collect(),
            steady: self.is_steady(),
            holders: self.holders.clone(),
            keepers: self.keepers.clone(),
            gpus: self.fits(gpus).iter().map(fit).collect(),
            notes: notes.collect(),
            remarks: self.remarks.clone(),
            children: self.children.iter().map(child).collect(),
            addresses: self.replayed_orders.as_ref().map(ReplayedOrders::to_answer),
            address_orders: None,
            rank: None,
            local_rank: None,
        }
    }
}

impl RanksReport {
    /// The report for JSON: that of the rank with the largest peak reserved, and those of all ranks.
    pub fn to_answer(&self, ranks: &Ranks, gpus: &[GpuProfile]) -> DryRunAnswer {
        let of_rank = |rank: &RankReport| DryRunResult {
            rank: Some(rank.rank),
            local_rank: Some(ranks.local_rank(rank.rank)),
            ..rank.report.fields(gpus)
        };
        let largest = self.largest().map_or_else(|| Report::default().fields(gpus), of_rank);
        let run = DryRunResult {
            exact: self.ranks.iter().all(|rank| rank.report.is_exact()),
            status: self.status(),
            ..largest
        };
        let each = self.ranks.iter().map(|rank| DryRunRank { version: VERSION, run: of_rank(rank) });
        let ranks = DryRunRanks {
            world_size: ranks.world_size(),
            failed_rank: self.first_failed,
            interrupted: self.is_interrupted,
            ranks: each.collect(),
        };
        DryRunAnswer { version: VERSION, run, of_ranks: Some(ranks) }
    }
}

fn child(child: &ChildPeak) -> DryRunChild {
    DryRunChild {
        process: child.process,
        device: child.device as u64,
        bytes: child.bytes,
        peak_allocated: child.counted.map(|counted| counted.peak_allocated),
        peak_reserved: child.counted.map(|counted| counted.peak_reserved),
    }
}

/// An iteration as rows of the report's `steps`, one for each device.
fn step(step: &Iteration) -> Vec<DryRunStep> {
    let rows = step.devices.iter().zip(0..).map(|(device, at)| DryRunStep {
        number: step.number,
        device: at,
        peak_allocated: device.peak_allocated,
        peak_reserved: device.peak_reserved,
        allocated: device.allocated,
    });
    rows.collect()
}

fn fit(fit: &GpuFit) -> DryRunGpu {
    DryRunGpu {
        name: fit.gpu.name.to_owned(),
        id: fit.gpu.id.to_owned(),
        total: fit.gpu.total_memory,
        fits: fit.fits,
        at: fit.at.clone(),
    }
}
