//! Numbers as the page writes them.

/// How much of a job is done, in percent from 0 to 100; 0 while `total` is 0, which means unknown.
pub(crate) fn percent_done(done: u64, total: u64) -> u64 {
    // Jobs count requests and bytes, which stay far below 2^57, so the product does not overflow.
    done.saturating_mul(100).checked_div(total).unwrap_or(0).min(100)
}

/// `1,234,567`.
pub(crate) fn grouped_signed(count: i64) -> String {
    let sign = if count < 0 { "-" } else { "" };
    format!("{sign}{}", blockyard_record::grouped(count.unsigned_abs()))
}

/// `1,234,567`, of a count of things in memory.
pub(crate) fn grouped_count(count: usize) -> String {
    blockyard_record::grouped(count as u64)
}
