//! The report as JSON: `docs/dry-run.md` has its fields.

use blockyard_gpus::GpuProfile;
use serde_json::{Value, json};

use crate::{ChildPeak, Fit, Place, PrintedLine, RankReport, Ranks, RanksReport, Report, Step};

/// Counts changes of the fields that take something away.
const VERSION: u32 = 1;

impl Report {
    /// The report as JSON, with whether the program fits on these GPUs, of which the first was stood for.
    #[must_use]
    pub fn to_json(&self, gpus: &[GpuProfile]) -> Value {
        let peaks = self.devices.iter().enumerate().map(|(at, device)| {
            json!({
                "device": at,
                "allocated": device.peak_allocated.get(),
                "reserved": device.peak_reserved.get(),
                "allocated_at_end": device.allocated.get(),
            })
        });
        let outside = gpus.first().map(|gpu| self.outside(gpu)).unwrap_or_default();
        let outside = outside.iter().enumerate().map(|(at, outside)| {
            let parts = outside.parts.iter().map(|(what, bytes)| json!({"what": what, "bytes": bytes.get()}));
            json!({"device": at, "parts": parts.collect::<Vec<_>>(), "unknown": outside.unknown})
        });
        let holders = self.holders.iter().map(|row| json!({"what": row.what, "bytes": row.bytes.get()}));
        let notes = self.notes.iter().map(
            |note| json!({"kind": note.kind, "text": note.sentence(), "file": note.file, "line": note.line}),
        );
        json!({
            "version": VERSION,
            "exact": self.is_exact(),
            "status": self.status,
            "error": self.error,
            "error_at": self.error_at.as_ref().map(place),
            "is_cut": self.is_cut,
            "lines": self.lines.iter().map(line).collect::<Vec<_>>(),
            "peaks": peaks.collect::<Vec<_>>(),
            "outside": outside.collect::<Vec<_>>(),
            "steps": self.steps.iter().flat_map(step).collect::<Vec<_>>(),
            "steady": self.is_steady(),
            "holders": holders.collect::<Vec<_>>(),
            "gpus": self.fits(gpus).iter().map(fit).collect::<Vec<_>>(),
            "notes": notes.collect::<Vec<_>>(),
            "remarks": self.remarks,
            "children": self.children.iter().map(child).collect::<Vec<_>>(),
            "address_orders": Value::Null,
        })
    }
}

impl RanksReport {
    /// The report of the rank with the largest peak reserved as JSON, and with it those of all ranks.
    #[must_use]
    pub fn to_json(&self, ranks: &Ranks, gpus: &[GpuProfile]) -> Value {
        let of_rank = |rank: &RankReport| {
            let mut whole = rank.report.to_json(gpus);
            whole["rank"] = json!(rank.rank);
            whole["local_rank"] = json!(ranks.local(rank.rank));
            whole
        };
        let mut whole = self.largest().map_or_else(|| Report::default().to_json(gpus), of_rank);
        whole["exact"] = json!(self.ranks.iter().all(|rank| rank.report.is_exact()));
        whole["status"] = json!(self.status());
        whole["world_size"] = json!(ranks.world());
        whole["failed_rank"] = json!(self.failed);
        whole["interrupted"] = json!(self.is_interrupted);
        whole["ranks"] = self.ranks.iter().map(of_rank).collect();
        whole
    }
}

fn child(child: &ChildPeak) -> Value {
    json!({
        "process": child.process,
        "device": child.device,
        "bytes": child.bytes.get(),
        "peak_allocated": child.counted.map(|counted| counted.peak_allocated.get()),
        "peak_reserved": child.counted.map(|counted| counted.peak_reserved.get()),
    })
}

fn place(place: &Place) -> Value {
    json!({"file": place.file, "line": place.line})
}

fn line(line: &PrintedLine) -> Value {
    json!({"text": line.text, "exact": line.why.is_none(), "why": line.why})
}

/// A row for each device.
fn step(step: &Step) -> Vec<Value> {
    let row = |(at, device): (usize, &crate::StepPeak)| {
        json!({
            "number": step.number,
            "device": at,
            "peak_allocated": device.peak_allocated.get(),
            "peak_reserved": device.peak_reserved.get(),
            "allocated": device.allocated.get(),
        })
    };
    step.devices.iter().enumerate().map(row).collect()
}

fn fit(fit: &Fit) -> Value {
    json!({
        "name": fit.gpu.name,
        "id": fit.gpu.id,
        "total": fit.gpu.total_memory.get(),
        "fits": fit.is_fitting,
        "at": fit.at.as_ref().map(place),
    })
}
