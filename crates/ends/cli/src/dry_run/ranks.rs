//! The report of a program of several processes.

use std::fmt::{self, Write as _};

use blockyard_dry_run::{DeviceReport, RankReport, Ranks, RanksReport, Torch};
use blockyard_gpus::GpuProfile;

use super::growth::write_growth;
use super::text::{head_text, shown, write_addresses, write_details, write_end};

/// The peaks of each rank that ran, and all details of the rank with the largest peak.
pub(super) fn text(
    report: &RanksReport,
    ranks: &Ranks,
    gpus: &[GpuProfile],
    torch: &Torch,
) -> Result<String, fmt::Error> {
    let mut text = head_text(gpus, torch)?;
    let (count, world) = (report.ranks.len(), ranks.world_size());
    let (nodes, per_node) = (ranks.nodes(), ranks.per_node());
    let nodes = if nodes == 1 { String::new() } else { format!(", {nodes} nodes with {per_node} each") };
    if count < usize::try_from(world).unwrap_or(usize::MAX) {
        let ran = if count == 1 { "1 rank of".to_owned() } else { format!("{count} ranks of") };
        writeln!(text, "  {ran} {world} ran{nodes}; the others are assumed to have the same values")?;
    } else {
        writeln!(text, "  {world} {}{nodes}", if world == 1 { "rank" } else { "ranks, all of which ran" })?;
    }
    for rank in &report.ranks {
        write_rank(&mut text, rank)?;
        write_addresses(&mut text, &rank.report, gpus, &format!("rank {}: ", rank.rank))?;
    }
    if report.is_interrupted {
        writeln!(text, "  the run was interrupted; the numbers are those of the part that ran")?;
    }
    if let Some(failed) = report.first_failed {
        writeln!(text, "  rank {failed} failed first")?;
    }
    let Some(largest) = report.largest() else { return Ok(text) };
    if count > 1 {
        writeln!(
            text,
            "  the largest peak reserved is that of rank {}; the rest is about that rank:",
            largest.rank
        )?;
    }
    write_growth(&mut text, &largest.report)?;
    write_details(&mut text, &largest.report, gpus, false)?;
    let others = report.ranks.iter().filter(|rank| rank.rank != largest.rank && !rank.report.is_exact());
    let others: Vec<String> = others.map(|rank| rank.rank.to_string()).collect();
    if largest.report.is_exact() && !others.is_empty() {
        writeln!(text, "  estimates: rank {}; --json has the reasons", others.join(", "))?;
    }
    Ok(text)
}

fn write_rank(text: &mut String, rank: &RankReport) -> fmt::Result {
    let is_used = |device: &&(usize, &DeviceReport)| device.1.peak_reserved.get() > 0;
    let devices: Vec<(usize, &DeviceReport)> = rank.report.devices.iter().enumerate().collect();
    let used: Vec<&(usize, &DeviceReport)> = devices.iter().filter(is_used).collect();
    let mut reason = String::new();
    write_end(&mut reason, &rank.report)?;
    for line in reason.lines() {
        writeln!(text, "  rank {}: {}", rank.rank, line.trim_start())?;
    }
    if used.is_empty() && !rank.report.is_cut {
        writeln!(text, "  rank {}: the program did not use the GPU", rank.rank)?;
    }
    for (at, device) in used {
        writeln!(
            text,
            "  rank {}: cuda:{at}: peak allocated {}, peak reserved {}, allocated at the end {}",
            rank.rank,
            shown(device.peak_allocated),
            shown(device.peak_reserved),
            shown(device.allocated)
        )?;
    }
    Ok(())
}
