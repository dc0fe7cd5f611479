//! The layouts for a person: a table and, with three dimensions, a map.

use std::fmt::{self, Write as _};

use blockyard_fit::{Layout, Probe};

use super::super::options::{FitOptions, RunRanks};
use super::super::text::{failed, limit, write_on_gpu, write_proof};
use super::{LayoutRuns, LayoutsOnGpu, numbers};

/// The most layouts that are shown; JSON has all.
const MAX_LAYOUTS: usize = 40;
/// The unit of the map in bytes.
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

pub(super) fn write(text: &mut String, answer: &LayoutsOnGpu, options: &FitOptions) -> fmt::Result {
    write_sentence(text, answer)?;
    if options.quiet {
        return Ok(());
    }
    write_table(text, answer)?;
    failures(text, answer)?;
    map(text, answer)?;
    if let Some((layout, found)) = answer.best() {
        write_holders(text, layout, found)?;
    }
    write_ranks(text, options.run_ranks.as_ref(), answer.layouts.iter())?;
    let best =
        answer.best().and_then(|(_, found)| found.deciding().iter().max_by_key(|probe| probe.peak_reserved));
    write_on_gpu(text, &answer.conditions, best)?;
    let proofs: Vec<&Probe> = answer.answered().flat_map(|(_, found)| &found.ranks).collect();
    write_proof(text, &proofs, proofs.iter().all(|probe| probe.is_exact))
}

/// Writes which ranks ran in place of the others.
pub(in super::super) fn write_ranks<'a>(
    text: &mut String,
    run_ranks: Option<&RunRanks>,
    layouts: impl Iterator<Item = &'a Layout>,
) -> fmt::Result {
    let stages = layouts.filter_map(|layout| layout.size("pp")).max().unwrap_or(1);
    let more = match (run_ranks, stages) {
        (Some(RunRanks::All), _) => return writeln!(text, "  all ranks of each layout ran"),
        (Some(RunRanks::These(ranks)), _) => {
            let ranks = numbers(ranks);
            return writeln!(
                text,
                "  rank {ranks} of each layout ran; a rank that did not run may take more"
            );
        }
        (None, 0 | 1) => "",
        (None, 2) => ", with two stages also the last rank",
        (None, _) => {
            ", with stages also the last rank, and with more than two also a rank of a stage between"
        }
    };
    writeln!(text, "  rank 0 of each layout ran{more}; a rank that did not run may take more")
}

fn write_sentence(text: &mut String, answer: &LayoutsOnGpu) -> fmt::Result {
    let rows = || answer.found.iter().flatten();
    let fitting = answer.answered().filter(|(_, found)| found.fits).count();
    let answered = answer.answered().count();
    let errors = rows().filter(|row| row.is_err()).count();
    write!(
        text,
        "{} layouts of {} ranks in {} each: {fitting} fit, {} do not",
        answer.layouts.len(),
        answer.world,
        limit(&answer.conditions),
        answered - fitting
    )?;
    if errors > 0 {
        write!(text, ", {errors} failed")?;
    }
    let left = answer.layouts.len() - rows().count();
    if left > 0 {
        write!(text, ", {left} did not run")?;
    }
    match answer.best() {
        Some((layout, found)) => {
            writeln!(text, "; the least peak reserved has {layout}: {}", found.peak_reserved())
        }
        None => writeln!(text),
    }
}

/// The layouts that fit with the least first, then those that do not.
fn write_table(text: &mut String, answer: &LayoutsOnGpu) -> fmt::Result {
    let mut rows: Vec<(&Layout, &LayoutRuns)> = answer.answered().collect();
    rows.sort_by_key(|(_, found)| (!found.fits, found.peak_reserved()));
    if rows.is_empty() {
        return Ok(());
    }
    for name in &answer.names {
        write!(text, "  {name:>6}")?;
    }
    writeln!(text, "  {:>9}  {:>14}  {:>14}", "rank", "peak allocated", "peak reserved")?;
    for (layout, found) in rows.iter().take(MAX_LAYOUTS) {
        for (at, probe) in found.deciding().iter().enumerate() {
            for (name, size) in layout.sizes() {
                let width = name.len().max(6);
                let size = if at == 0 { size.to_string() } else { String::new() };
                write!(text, "  {size:>width$}")?;
            }
            let (allocated, reserved) = (probe.peak_allocated.to_string(), probe.peak_reserved.to_string());
            let result = if at == 0 { fit_text(found) } else { String::new() };
            writeln!(text, "  {:>9}  {allocated:>14}  {reserved:>14}  {result}", probe.value)?;
        }
    }
    if rows.len() > MAX_LAYOUTS {
        writeln!(text, "  and {} more, in the JSON", rows.len() - MAX_LAYOUTS)?;
    }
    Ok(())
}

fn fit_text(found: &LayoutRuns) -> String {
    let limited = found.under_limit.iter().flatten();
    match (found.fits, limited.clone().find(|probe| !probe.fits)) {
        (true, _) if found.under_limit.is_some() => {
            "fits after the allocator releases cached segments".to_owned()
        }
        (true, _) => "fits".to_owned(),
        (false, Some(probe)) => format!("rank {} runs out of memory{}", probe.value, failed(probe)),
        (false, None) => "does not fit; the peaks are those without a limit".to_owned(),
    }
}

/// Layouts whose programs failed, those with the same error together.
fn failures(text: &mut String, answer: &LayoutsOnGpu) -> fmt::Result {
    let mut by_error: Vec<(&str, Vec<&Layout>)> = Vec::new();
    for (layout, found) in answer.layouts.iter().zip(&answer.found) {
        let Some(Err(error)) = found else { continue };
        match by_error.iter_mut().find(|(known, _)| known == error) {
            Some((_, layouts)) => layouts.push(layout),
            None => by_error.push((error, vec![layout])),
        }
    }
    for (error, layouts) in by_error {
        let more = if layouts.len() > 1 { format!(" and {} more", layouts.len() - 1) } else { String::new() };
        if let Some(first) = layouts.first() {
            writeln!(text, "  {first}{more} failed: {error}")?;
        }
    }
    Ok(())
}

/// The map of peaks by the second and the third dimension. The first dimension follows from these two.
fn map(text: &mut String, answer: &LayoutsOnGpu) -> fmt::Result {
    let [_, rows, columns] = answer.names.as_slice() else { return Ok(()) };
    let of = |name: &str| {
        let mut sizes: Vec<u64> = answer.layouts.iter().filter_map(|layout| layout.size(name)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    let (row_sizes, column_sizes) = (of(rows), of(columns));
    if row_sizes.len() < 2 || column_sizes.len() < 2 {
        return Ok(());
    }
    writeln!(
        text,
        "  peak reserved in GiB by {rows} (down) and {columns} (across); ! does not fit, x failed, - no such layout:"
    )?;
    write!(text, "  {:>8}", "")?;
    for column in &column_sizes {
        write!(text, "  {column:>8}")?;
    }
    writeln!(text)?;
    for row in &row_sizes {
        write!(text, "  {row:>8}")?;
        for column in &column_sizes {
            let at = answer
                .layouts
                .iter()
                .position(|layout| layout.size(rows) == Some(*row) && layout.size(columns) == Some(*column));
            let cell = match at.map(|at| answer.found.get(at).and_then(Option::as_ref)) {
                None => "-".to_owned(),
                Some(None) => "?".to_owned(),
                Some(Some(Err(_))) => "x".to_owned(),
                Some(Some(Ok(found))) => gib(found),
            };
            write!(text, "  {cell:>8}")?;
        }
        writeln!(text)?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
fn gib(found: &LayoutRuns) -> String {
    let mark = if found.fits { "" } else { "!" };
    format!("{:.2}{mark}", found.peak_reserved().get() as f64 / GIB)
}

/// Who holds the peak of the rank that needs most.
fn write_holders(text: &mut String, layout: &Layout, found: &LayoutRuns) -> fmt::Result {
    let Some(probe) = found.deciding().iter().max_by_key(|probe| probe.peak_reserved) else { return Ok(()) };
    if probe.holders.is_empty() {
        return Ok(());
    }
    let rank = numbers(&[u32::try_from(probe.value).unwrap_or(u32::MAX)]);
    writeln!(text, "  holders of the peak of the last step of rank {rank} of {layout}:")?;
    for held in &probe.holders {
        writeln!(text, "    {:>10}  {}", held.bytes.to_string(), held.what)?;
    }
    Ok(())
}
