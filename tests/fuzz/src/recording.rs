//! Files that should be recordings.

use std::ops::ControlFlow;

use blockyard_pytorch::RecordedRun;
use blockyard_record::{AllocationId, Recording};
use blockyard_replay::verify;

/// Reads the bytes as a recording of PyTorch, whose verification then ends with an answer, and as a recording
/// of our own.
pub fn recording(data: &[u8]) {
    if let Ok(run) = RecordedRun::read(data) {
        // The verification may fail, since the file may state anything.
        if let Ok(verified) = verify(&run, &mut |_| ControlFlow::Continue(())) {
            visit(&verified.recording);
            let bytes = verified.recording.to_bytes().unwrap();
            assert_eq!(Recording::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
        }
    }
    if let Ok(recording) = Recording::from_bytes(data) {
        visit(&recording);
    }
}

/// Reads every part of a recording.
fn visit(recording: &Recording) {
    for step in 0..=recording.step_count().min(1000) {
        let _ = (recording.step(step), recording.outcome(step), recording.breakdown_after(step));
    }
    let events = recording.event_count();
    for event in [0, 1, events / 2, events, events + 1] {
        let _ = (recording.event(event), recording.step_of_event(event), recording.steps_done(event));
        if let Ok(state) = recording.state_at(event) {
            let _ = (state.snapshot(), state.breakdown());
        }
    }
    for allocation in [0, 1, u32::MAX].map(AllocationId::new) {
        let _ = (recording.name(allocation), recording.allocated_at(allocation));
    }
    let _ = (recording.trace(), recording.labels(), recording.streams(), recording.failed_steps());
}
