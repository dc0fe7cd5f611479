//! Recordings that the library wrote, replayed.

use std::ops::ControlFlow;
use std::path::Path;

use blockyard_pytorch::{RecordedRun, stat_index, stat_values};
use blockyard_record::Stats;

/// Replays the recording; everything in it must be identical.
pub(crate) fn verify(path: &Path) {
    let run = RecordedRun::read(&std::fs::read(path).unwrap()).unwrap();
    let verified = blockyard_replay::verify(&run, &mut |_| ControlFlow::Continue(())).unwrap();
    let comparison = verified.comparison;
    assert!(comparison.is_identical(), "{}: {comparison:?}", path.display());
}

/// The statistics at the end of a replay of the recording.
pub(crate) fn replayed_stats(path: &Path) -> Stats {
    let run = RecordedRun::read(&std::fs::read(path).unwrap()).unwrap();
    let verified = blockyard_replay::verify(&run, &mut |_| ControlFlow::Continue(())).unwrap();
    let recording = verified.recording;
    *recording.state_at(recording.event_count()).unwrap().stats()
}

/// The value of that key.
pub(crate) fn value(stats: &Stats, key: &str) -> i64 {
    stat_values(stats)[stat_index(key).unwrap()]
}
