//! A recording is the same every time, survives its encoding, and gives every moment of its run.

use blockyard_device::VirtualDevice;
use blockyard_record::{MemoryState, Recording};
use blockyard_replay::Runner;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::config;
use crate::cases::{Case, cases};

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn the_same_requests_give_the_same_recording(case in cases(1..300)) {
        prop_assert_eq!(record(&case).to_bytes().unwrap(), record(&case).to_bytes().unwrap());
    }

    #[test]
    fn a_recording_survives_its_encoding(case in cases(1..300)) {
        let recording = record(&case);
        let bytes = recording.to_bytes().unwrap();
        let again = Recording::from_bytes(&bytes).unwrap();
        prop_assert_eq!(again.to_bytes().unwrap(), bytes);
        prop_assert_eq!(again.info(), recording.info());
        prop_assert_eq!(again.failed_steps(), recording.failed_steps());
        let events = |recording: &Recording| -> Vec<_> {
            (0..recording.event_count()).map(|index| recording.event(index).unwrap()).collect()
        };
        prop_assert_eq!(events(&again), events(&recording));
    }

    #[test]
    fn any_moment_equals_a_fold_from_the_start(case in cases(200..900), moments in vec(any::<Index>(), 8)) {
        check_moments(&record(&case), &moments);
    }

    #[test]
    fn foreign_bytes_are_an_error(bytes in vec(any::<u8>(), 0..512)) {
        // A recording has a dozen columns that must agree in length, which random bytes never do.
        prop_assert!(Recording::from_bytes(&bytes).is_err());
    }

    #[test]
    fn damaged_bytes_do_no_harm(
        case in cases(300..600),
        damage in vec((any::<bool>(), any::<Index>(), any::<u8>()), 1..4),
        moments in vec(any::<Index>(), 4),
    ) {
        let mut bytes = record(&case).to_bytes().unwrap();
        for (is_late, place, byte) in damage {
            // The last bytes are a saved state, which is not checked as it is read.
            let least = if is_late { bytes.len() - bytes.len() / 4 } else { 0 };
            let place = least + place.index(bytes.len() - least);
            bytes[place] = byte;
        }
        if let Ok(damaged) = Recording::from_bytes(&bytes) {
            look_around(&damaged, &moments);
        }
    }
}

#[test]
fn any_moment_of_a_long_run_equals_a_fold_from_the_start() {
    let mut runner = TestRunner::deterministic();
    // Beyond 256 saved states, 512 events apart, every second one is dropped.
    let case = cases(110_000).new_tree(&mut runner).unwrap().current();
    let recording = record(&case);
    assert!(recording.event_count() > 140_000, "{} events", recording.event_count());
    let moments: Vec<Index> = vec(any::<Index>(), 100).new_tree(&mut runner).unwrap().current();
    check_moments(&recording, &moments);

    // However long the run, saved states are few, and any moment is near to one.
    let saved: Vec<usize> = recording.saved_event_counts().collect();
    assert!((64..=256).contains(&saved.len()), "{} states are saved", saved.len());
    let ends = saved.iter().copied().chain([recording.event_count()]);
    let gaps = ends.scan(0, |before, end| Some(end - std::mem::replace(before, end)));
    let widest = gaps.max().unwrap();
    assert!(widest < recording.event_count() / 50, "{widest} events lie between two saved states");
}

#[test]
fn a_saved_state_with_any_byte_changed_does_no_harm() {
    let mut runner = TestRunner::deterministic();
    let strategy = cases(200..400);
    // Just over 512 events, where the first state is saved: its bytes are at the end.
    let recording = std::iter::repeat_with(|| record(&strategy.new_tree(&mut runner).unwrap().current()))
        .find(|recording| (513..560).contains(&recording.event_count()))
        .unwrap();
    let bytes = recording.to_bytes().unwrap();
    let last = recording.event_count();
    for place in bytes.len() - bytes.len() / 5..bytes.len() {
        for change in [1, 2, 255] {
            let mut damaged = bytes.clone();
            damaged[place] = damaged[place].wrapping_add(change);
            let Ok(damaged) = Recording::from_bytes(&damaged) else { continue };
            let Ok(state) = damaged.state_at(last) else { continue };
            let most = state.snapshot().segments.iter().map(|segment| segment.blocks.len()).max();
            assert!(most.unwrap_or(0) <= last, "byte {place} leads in circles");
        }
    }
}

fn record(case: &Case) -> Recording {
    let workload = case.workload();
    let mut runner = Runner::new(VirtualDevice::new(case.capacity), &case.settings(), &workload).with_trace();
    while runner.step().unwrap().is_some() {}
    let (recording, trace) = runner.finish().unwrap();
    assert_eq!(recording.step_count(), case.requests.len());
    assert_eq!(recording.trace().unwrap(), trace);
    recording
}

fn check_moments(recording: &Recording, moments: &[Index]) {
    let last = recording.event_count();
    let mut moments: Vec<usize> = moments.iter().map(|moment| moment.index(last + 1)).collect();
    moments.extend([0, last]);
    moments.sort_unstable();
    let mut folded = recording.initial_state();
    let mut done = 0;
    for moment in moments {
        for index in done..moment {
            folded.apply(&recording.event(index).unwrap()).unwrap();
        }
        done = moment;
        let state = recording.state_at(moment).unwrap();
        assert_eq!(state.snapshot(), folded.snapshot(), "after {moment} events");
        assert_eq!(state.stats(), folded.stats(), "after {moment} events");
        assert_eq!(state.limit(), folded.limit(), "after {moment} events");
        check_breakdown(recording, moment, &folded);
    }
}

fn check_breakdown(recording: &Recording, moment: usize, state: &MemoryState) {
    let steps = recording.steps_done(moment);
    let Some(step) = steps.checked_sub(1) else { return };
    if recording.step(step).unwrap().end == moment {
        assert_eq!(recording.breakdown_after(step), Some(state.breakdown()), "after step {step}");
    }
}

// The calls that a page makes on a recording; they must end for any content.
fn look_around(recording: &Recording, moments: &[Index]) {
    for moment in moments {
        let moment = moment.index(recording.event_count() + 2);
        if let Ok(state) = recording.state_at(moment) {
            let _ = (state.snapshot(), state.breakdown(), state.segments().count());
        }
        let _ = (recording.step_of_event(moment), recording.steps_done(moment), recording.event(moment));
    }
    for step in 0..recording.step_count() {
        let _ = (recording.step(step), recording.breakdown_after(step), recording.outcome(step));
    }
    let _ = recording.trace();
}
