//! Snapshots: any bytes are read, or an error says why not, and a snapshot that is read gives recordings.

use std::ops::ControlFlow;

use blockyard_pytorch::snapshot::{Limits, SnapshotError, SnapshotFile, read_within};
use blockyard_replay::certify;

/// The limits of a file, which are larger than any input of a fuzzer needs.
const LIMITS: Limits = Limits { content: 1 << 22, memory: 1 << 26 };
/// Longer traces are not replayed: that is slow, and the target `recording` replays every input.
const MAX_REPLAY: usize = 200;

/// Bytes of any file that may be a snapshot.
pub fn snapshot(data: &[u8]) {
    let Ok(file) = read_within(data, LIMITS, &mut |_| ControlFlow::Continue(())) else { return };
    for place in 0..file.devices.len() {
        check_device(&file, place);
    }
    check_round_trip(&file);
}

fn check_device(file: &SnapshotFile, place: usize) {
    let found = match blockyard_pytorch::trace::record(file, place, "", &mut |_| ControlFlow::Continue(())) {
        Ok(found) => found,
        Err(SnapshotError::Field { .. }) => return,
        Err(error) => panic!("device {place}: {error:?}"),
    };
    let recording = found.recording;
    let end = recording.state_at(recording.event_count()).expect("its events add up");
    let breakdown = end.breakdown();
    assert!(breakdown.allocated() <= breakdown.active() && breakdown.active() <= breakdown.reserved());
    if file.devices[place].trace.len() <= MAX_REPLAY {
        let _ = certify(file, place, &mut |_| ControlFlow::Continue(()));
    }
}

fn check_round_trip(file: &SnapshotFile) {
    let mut bytes = Vec::new();
    file.write_pickle(&mut bytes).expect("memory takes all bytes");
    let again = read_within(bytes.as_slice(), LIMITS, &mut |_| ControlFlow::Continue(()));
    let again = again.expect("what was written is a snapshot");
    assert_eq!(again.devices.len(), file.devices.len());
    for (again, device) in again.devices.iter().zip(&file.devices) {
        assert!(again.trace.iter().map(|entry| entry.entry).eq(device.trace.iter().map(|entry| entry.entry)));
        assert_eq!(again.segments.len(), device.segments.len());
    }
}
