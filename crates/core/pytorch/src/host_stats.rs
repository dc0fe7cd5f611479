//! `torch.cuda.host_memory_stats()`.

use blockyard_record::{DurationStat, HostStats, Stat};

/// The result of `torch.cuda.host_memory_stats()`: 28 keys and values, sorted by key.
#[must_use]
pub fn host_memory_stats(stats: &HostStats) -> Vec<(String, i64)> {
    let mut pairs = vec![
        ("num_host_alloc".to_owned(), stats.num_host_alloc),
        ("num_host_free".to_owned(), stats.num_host_free),
    ];
    let counts = [
        ("allocations", stats.allocations),
        ("active_requests", stats.active_requests),
        ("allocated_bytes", stats.allocated_bytes),
        ("active_bytes", stats.active_bytes),
    ];
    for (name, Stat { current, peak, allocated, freed }) in counts {
        let members = [("current", current), ("peak", peak), ("allocated", allocated), ("freed", freed)];
        pairs.extend(members.map(|(member, value)| (format!("{name}.{member}"), value)));
    }
    let times = [("host_alloc_time", stats.host_alloc_time), ("host_free_time", stats.host_free_time)];
    for (name, time) in times {
        let DurationStat { total, max, min, count } = time;
        let members =
            [("total", total), ("max", max), ("min", min), ("count", count), ("avg", time.average())];
        pairs.extend(members.map(|(member, value)| (format!("{name}.{member}"), value)));
    }
    pairs.sort();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_28_keys_in_the_order_of_their_text() {
        let mut stats = HostStats { num_host_alloc: 3, ..HostStats::default() };
        stats.active_bytes.peak = 4096;
        stats.host_free_time.add(7);
        stats.host_free_time.add(8);
        let pairs = host_memory_stats(&stats);
        assert_eq!(pairs.len(), 28);
        assert!(pairs.is_sorted());
        assert_eq!(pairs[0].0, "active_bytes.allocated");
        assert_eq!(pairs[27], ("num_host_free".to_owned(), 0));
        let value = |key: &str| pairs.iter().find(|(known, _)| known == key).map(|(_, value)| *value);
        assert_eq!(value("active_bytes.peak"), Some(4096));
        assert_eq!(value("host_free_time.avg"), Some(7), "cut off");
        assert_eq!(value("host_free_time.max"), Some(8));
        assert_eq!(value("num_host_alloc"), Some(3));
    }
}
