//! `torch.cuda.memory_summary()`, to the letter.

use std::fmt::Write;

use blockyard_record::{Stat, StatArray, Stats};

const WIDTH: usize = 75;

/// The result of `torch.cuda.memory_summary(device, abbreviated)`, to the letter, with a new line at the end.
#[must_use]
pub fn memory_summary(stats: &Stats, device: u32, abbreviated: bool) -> String {
    let mut text = String::new();
    let mut line = |content: &str| {
        let _ = writeln!(text, "|{content}|");
    };
    let (double, single) = ("=".repeat(WIDTH), "-".repeat(WIDTH));
    line(&double);
    line(&format!(" {:16} PyTorch CUDA memory summary, device ID {device:<17} ", ""));
    line(&single);
    let (ooms, retries) = (stats.num_ooms, stats.num_alloc_retries);
    line(&format!("  {:9} CUDA OOMs: {ooms:<12} | {:6} cudaMalloc retries: {retries:<8}  ", "", ""));
    line(&double);
    line("        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ");
    for (name, array, format) in groups(stats) {
        line(&single);
        line(&row(name, &array.all, &array.all, format));
        if !abbreviated {
            line(&row("      from large pool", &array.large_pool, &array.all, format));
            line(&row("      from small pool", &array.small_pool, &array.all, format));
        }
    }
    for (name, stat) in [
        ("Oversize allocations", &stats.oversize_allocations),
        ("Oversize GPU segments", &stats.oversize_segments),
    ] {
        line(&single);
        line(&row(name, stat, stat, count));
    }
    line(&double);
    text
}

type Format = fn(i64, i64) -> String;

fn groups(stats: &Stats) -> [(&'static str, &StatArray, Format); 9] {
    [
        ("Allocated memory", &stats.allocated_bytes, size),
        ("Active memory", &stats.active_bytes, size),
        ("Requested memory", &stats.requested_bytes, size),
        ("GPU reserved memory", &stats.reserved_bytes, size),
        ("Non-releasable memory", &stats.inactive_split_bytes, size),
        ("Allocations", &stats.allocation, count),
        ("Active allocs", &stats.active, count),
        ("GPU reserved segments", &stats.segment, count),
        ("Non-releasable allocs", &stats.inactive_split, count),
    ]
}

// A column's unit is chosen by the group's first row, so that the rows of a group can be compared.
fn row(name: &str, stat: &Stat, reference: &Stat, format: Format) -> String {
    format!(
        " {name:<21} | {} | {} | {} | {} ",
        format(stat.current, reference.current),
        format(stat.peak, reference.peak),
        format(stat.allocated, reference.allocated),
        format(stat.freed, reference.freed),
    )
}

fn size(value: i64, reference: i64) -> String {
    let (value, unit) =
        scaled(value, reference, 1024, 768.0 * 1024.0, &["B  ", "KiB", "MiB", "GiB", "TiB", "PiB"]);
    format!("{value:>6} {unit}")
}

fn count(value: i64, reference: i64) -> String {
    let (value, unit) = scaled(value, reference, 1000, 750.0 * 1000.0, &[" ", "K", "M"]);
    format!("{value:>7} {unit} ")
}

#[expect(clippy::cast_precision_loss, reason = "PyTorch divides the reference as a Python float")]
fn scaled(
    mut value: i64,
    reference: i64,
    step: i64,
    limit: f64,
    units: &[&'static str],
) -> (i64, &'static str) {
    let mut reference = reference as f64;
    let mut unit = 0;
    while reference >= limit && unit + 1 < units.len() {
        value = value.div_euclid(step);
        reference /= step as f64;
        unit += 1;
    }
    (value, units[unit])
}
