//! Our allocator compared with PyTorch's own library.

use anyhow::{Result, ensure};
use blockyard_measure::{Measurement, OperationList, RatioGoal, ReportRow, Section, alternate};

use super::{BenchContext, FAKE_DEVICE, times_for};
use crate::native::{Libraries, Pass, Side};
use crate::suite::Suite;

/// Nanoseconds a pair of allocation and free, ours behind its C ABI beside PyTorch's, on every trace.
///
/// # Errors
///
/// When a library does not load, or the addresses or the statistics of the two differ.
pub(super) fn pytorch(context: &BenchContext) -> Result<Section> {
    let libraries = Libraries::load(&context.target)?;
    let suite = Suite::load(&context.workspace)?;
    let progress = super::progress("pytorch", suite.traces.len())?;
    let mut rows = Vec::new();
    for trace in &suite.traces {
        progress.set_message(trace.name.clone());
        rows.push(row(&libraries, trace, context.rounds)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let mut notes = vec![
        FAKE_DEVICE.to_owned(),
        "both through function pointers from one loop in C++ (PyTorch: raw_alloc, or raw_alloc_with_stream where there are several streams; raw_delete), lock and all statistics \
         on; each turn after one replay to warm up; the hash of all addresses was equal in every round, and all 122 statistics at the \
         end of each trace"
            .to_owned(),
        "what is left to gain: bare offset-allocator 0.2 behind the same lock and C ABI places as it likes, counts nothing, looks \
         nothing up, since its caller gets numbers for addresses, and knows no streams"
            .to_owned(),
    ];
    notes.extend(suite.missing);
    Ok(Section {
        rows,
        goal: Some(RatioGoal::AtLeast { mean: 10.0, each: 5.0 }),
        notes,
        ..Section::new(
            "pytorch",
            "Against PyTorch's own library, torch 2.11.0",
            "ns a pair of allocation and free",
            ["Blockyard", "PyTorch", "bare offset-allocator"],
        )
    })
}

fn row(libraries: &Libraries, trace: &OperationList, rounds: usize) -> Result<ReportRow> {
    let pairs = trace.pairs();
    let times = times_for(pairs)?;
    let mut ours = Pass::begin(libraries, Side::Ours, trace)?;
    let mut theirs = Pass::begin(libraries, Side::Theirs, trace)?;
    let (our_hash, their_hash) = (ours.warm(1)?, theirs.warm(1)?);
    ensure!(our_hash == their_hash, "{}: other addresses than PyTorch's when cold", trace.name);
    let mut hashes = [const { Vec::new() }; 3];
    let mut floor = (trace.streams == 1).then(|| Pass::beside(libraries, Side::Floor, trace, 0));
    let mut contenders = vec![(0, &mut ours), (1, &mut theirs)];
    contenders.extend(floor.as_mut().map(|pass| (2, pass)));
    let nanos = alternate(rounds, times, pairs, &mut contenders, |(place, pass), times| {
        let (hash, took) = pass.timed(times)?;
        hashes[*place].push(hash);
        anyhow::Ok(took)
    })?;
    let [our_hashes, their_hashes, _] = &hashes;
    if let Some(turn) = our_hashes.iter().zip(their_hashes).position(|(ours, theirs)| ours != theirs) {
        // Each turn has two replays, of which the first does not count.
        anyhow::bail!("{}: other addresses than PyTorch's in round {}", trace.name, turn / 2 + 1);
    }
    let (our_stats, their_stats) = (ours.stats()?, theirs.stats()?);
    if let Some(index) = (0..our_stats.len()).find(|index| our_stats[*index] != their_stats[*index]) {
        anyhow::bail!(
            "{}: statistic {index} is {}, PyTorch's {}",
            trace.name,
            our_stats[index],
            their_stats[index]
        );
    }
    let ratio = Measurement::ratio(&nanos[1], &nanos[0]);
    let nanos = [nanos, vec![Vec::new()]].concat();
    Ok(ReportRow::new(&trace.name, pairs, &nanos[..3]).with_ratio(ratio))
}
