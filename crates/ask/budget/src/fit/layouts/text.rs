//! The layouts for a person: a table and, with three dimensions, a map.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use blockyard_answers::{FitLayout, FitLayoutsOnGpu, FitPeaks, FitRank};

use super::super::text::{failed, limit, write_on_gpu, write_proof};
use super::{RunRanks, best, deciding, numbers};
use crate::growth::as_float;
use crate::mesh::STAGES;

/// The most layouts that are shown; JSON has all.
const MAX_LAYOUTS: usize = 40;
/// The unit of the map in bytes.
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// A layout, with the dimensions in the order of the mesh.
pub(in super::super) fn layout_text<'a>(
    names: impl Iterator<Item = &'a str>,
    layout: &BTreeMap<String, u64>,
) -> String {
    let sizes = names.filter_map(|name| Some(format!("{name}={}", layout.get(name)?)));
    sizes.collect::<Vec<_>>().join(" ")
}

/// Writes the answer about one GPU.
pub(in super::super) fn write(
    text: &mut String,
    answer: &FitLayoutsOnGpu,
    run_ranks: Option<&RunRanks>,
    is_quiet: bool,
) -> fmt::Result {
    write_sentence(text, answer)?;
    if is_quiet {
        return Ok(());
    }
    write_table(text, answer)?;
    failures(text, answer)?;
    map(text, answer)?;
    let best = best(&answer.layouts);
    let most = best.and_then(|best| deciding(best).iter().max_by_key(|rank| rank.run.peak_reserved));
    if let (Some(best), Some(rank)) = (best, most) {
        write_holders(text, &named(answer, best), rank)?;
    }
    write_ranks(text, run_ranks, answer.layouts.iter().map(|row| &row.layout))?;
    write_on_gpu(text, &answer.conditions, most.map(|rank| &rank.run))?;
    let proofs: Vec<&FitPeaks> =
        answered(answer).flat_map(|row| &row.ranks).flatten().map(|rank| &rank.run).collect();
    write_proof(text, &proofs, proofs.iter().all(|run| run.exact))
}

/// The layouts whose runs gave an answer.
fn answered(answer: &FitLayoutsOnGpu) -> impl Iterator<Item = &FitLayout> {
    answer.layouts.iter().filter(|row| row.fits.is_some())
}

fn named(answer: &FitLayoutsOnGpu, row: &FitLayout) -> String {
    layout_text(answer.mesh.iter().map(String::as_str), &row.layout)
}

/// Writes which ranks ran in place of the others.
pub(in super::super) fn write_ranks<'a>(
    text: &mut String,
    run_ranks: Option<&RunRanks>,
    layouts: impl Iterator<Item = &'a BTreeMap<String, u64>>,
) -> fmt::Result {
    let stages = layouts.filter_map(|layout| layout.get(STAGES)).max().unwrap_or(&1);
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

fn write_sentence(text: &mut String, answer: &FitLayoutsOnGpu) -> fmt::Result {
    let count = |is: fn(&FitLayout) -> bool| answer.layouts.iter().filter(|row| is(row)).count();
    let [fitting, failing] = [count(|row| row.fits == Some(true)), count(|row| row.fits == Some(false))];
    let errors = count(|row| row.error.is_some());
    write!(
        text,
        "{} layouts of {} ranks in {} each: {fitting} fit, {failing} do not",
        answer.layouts.len(),
        answer.ranks,
        limit(&answer.conditions),
    )?;
    if errors > 0 {
        write!(text, ", {errors} failed")?;
    }
    let left = count(|row| row.fits.is_none() && row.error.is_none());
    if left > 0 {
        write!(text, ", {left} did not run")?;
    }
    match best(&answer.layouts) {
        Some(best) => {
            let reserved = best.peak_reserved.unwrap_or_default();
            writeln!(text, "; the least peak reserved has {}: {reserved}", named(answer, best))
        }
        None => writeln!(text),
    }
}

/// The layouts that fit with the least first, then those that do not.
fn write_table(text: &mut String, answer: &FitLayoutsOnGpu) -> fmt::Result {
    let mut rows: Vec<&FitLayout> = answered(answer).collect();
    rows.sort_by_key(|row| (row.fits != Some(true), row.peak_reserved));
    if rows.is_empty() {
        return Ok(());
    }
    for name in &answer.mesh {
        write!(text, "  {name:>6}")?;
    }
    writeln!(text, "  {:>9}  {:>14}  {:>14}", "rank", "peak allocated", "peak reserved")?;
    for row in rows.iter().take(MAX_LAYOUTS) {
        for (at, rank) in deciding(row).iter().enumerate() {
            for name in &answer.mesh {
                let width = name.len().max(6);
                let size = row.layout.get(name).filter(|_| at == 0).map(u64::to_string).unwrap_or_default();
                write!(text, "  {size:>width$}")?;
            }
            let (allocated, reserved) = (rank.run.peak_allocated, rank.run.peak_reserved);
            let result = if at == 0 { fit_text(row) } else { String::new() };
            writeln!(text, "  {:>9}  {allocated:>14}  {reserved:>14}  {result}", rank.rank)?;
        }
    }
    if rows.len() > MAX_LAYOUTS {
        writeln!(text, "  and {} more, in the JSON", rows.len() - MAX_LAYOUTS)?;
    }
    Ok(())
}

fn fit_text(row: &FitLayout) -> String {
    let failing = row.under_limit.iter().flatten().find(|rank| !rank.run.fits);
    match (row.fits == Some(true), failing) {
        (true, _) if row.under_limit.is_some() => {
            "fits after the allocator releases cached segments".to_owned()
        }
        (true, _) => "fits".to_owned(),
        (false, Some(rank)) => format!("rank {} runs out of memory{}", rank.rank, failed(&rank.run)),
        (false, None) => "does not fit; the peaks are those without a limit".to_owned(),
    }
}

/// Layouts whose programs failed, those with the same error together.
fn failures(text: &mut String, answer: &FitLayoutsOnGpu) -> fmt::Result {
    let mut by_error: Vec<(&str, &FitLayout, usize)> = Vec::new();
    for row in &answer.layouts {
        let Some(error) = &row.error else { continue };
        match by_error.iter_mut().find(|(known, ..)| known == error) {
            Some((.., more)) => *more += 1,
            None => by_error.push((error, row, 0)),
        }
    }
    for (error, first, more) in by_error {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        writeln!(text, "  {}{more} failed: {error}", named(answer, first))?;
    }
    Ok(())
}

/// The map of peaks by the second and the third dimension. The first dimension follows from these two.
fn map(text: &mut String, answer: &FitLayoutsOnGpu) -> fmt::Result {
    let [_, rows, columns] = answer.mesh.as_slice() else { return Ok(()) };
    let of = |name: &str| {
        let mut sizes: Vec<&u64> = answer.layouts.iter().filter_map(|row| row.layout.get(name)).collect();
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
            let is_cell = |found: &&FitLayout| {
                found.layout.get(rows) == Some(*row) && found.layout.get(columns) == Some(*column)
            };
            write!(text, "  {:>8}", cell(answer.layouts.iter().find(is_cell)))?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn cell(row: Option<&FitLayout>) -> String {
    let Some(row) = row else { return "-".to_owned() };
    match row.fits {
        None if row.error.is_some() => "x".to_owned(),
        None => "?".to_owned(),
        Some(fits) => {
            let mark = if fits { "" } else { "!" };
            format!("{:.2}{mark}", as_float(row.peak_reserved.unwrap_or_default().get()) / GIB)
        }
    }
}

/// Who holds the peak of the rank that needs most.
fn write_holders(text: &mut String, layout: &str, rank: &FitRank) -> fmt::Result {
    if rank.holders.is_empty() {
        return Ok(());
    }
    writeln!(text, "  holders of the peak of the last step of rank {} of {layout}:", rank.rank)?;
    for held in &rank.holders {
        writeln!(text, "    {:>10}  {}", held.bytes, held.what)?;
    }
    Ok(())
}
