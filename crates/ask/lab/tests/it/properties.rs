//! What must hold for any run.

use blockyard_lab::{ChangeKind, Conditions, Run, autopsy, bound, compare_allocators, diff};
use blockyard_record::{Bytes, StepOutcome, StreamId};
use blockyard_replay::{RunSettings, run as replay};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::{Request, TensorId, Workload};
use proptest::prelude::*;

use crate::growth::adds_up;
use crate::on;

/// Requests of sizes around the thresholds on two streams, with uses on the other one.
pub(crate) fn requests() -> impl Strategy<Value = Vec<Request>> {
    let size = prop_oneof![
        1_u64..2000,
        (1_u64 << 20) - 600..(1 << 20) + 600,
        (10_u64 << 20) - 600..(10 << 20) + 600,
        1_u64 << 20..60 << 20,
    ];
    let step = (0_u8..12, size, 0_u64..2, any::<prop::sample::Index>());
    prop::collection::vec(step, 1..90).prop_map(|steps| {
        let (mut all, mut live, mut next) = (Vec::new(), Vec::new(), 0);
        for (kind, size, stream, which) in steps {
            match kind {
                0..=3 if !live.is_empty() => {
                    let tensor = live.swap_remove(which.index(live.len()));
                    all.push(Request::Free { tensor });
                }
                4 if !live.is_empty() => {
                    let tensor = live[which.index(live.len())];
                    all.push(Request::RecordStream { tensor, stream: StreamId::new(stream) });
                }
                5 => all.push(Request::Advance { stream: Some(StreamId::new(stream)) }),
                6 if size % 8 == 0 => all.push(Request::EmptyCache),
                _ => {
                    let tensor = TensorId::new(next);
                    next += 1;
                    live.push(tensor);
                    all.push(Request::Allocate {
                        tensor,
                        size: Bytes::new(size),
                        stream: StreamId::new(stream),
                    });
                }
            }
        }
        all
    })
}

fn run_of(requests: Vec<Request>) -> Run {
    Run::from_workload("random", Workload::from_requests(requests), "", Bytes::gib(64))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_allocator_needs_less_than_the_lower_bound_and_no_layout_overlaps(requests in requests()) {
        let run = run_of(requests);
        let found = bound(&run, &mut on).unwrap();
        prop_assert!(found.is_valid());
        prop_assert!(found.lower_bound <= found.layout_peak);
        let rows = compare_allocators(&run, &run.conditions(), &mut || 0, &mut on).unwrap();
        prop_assert_eq!(rows.len(), 9);
        for row in rows {
            prop_assert_eq!(row.failed, None);
            prop_assert!(found.lower_bound <= row.peak_reserved, "{} under {}", row.peak_reserved, row.name);
        }
    }

    #[test]
    fn the_terms_of_a_difference_add_up(before in requests(), after in requests()) {
        let found = diff(&run_of(before), &run_of(after), &mut on).unwrap();
        prop_assert!(adds_up(&found.allocated) && adds_up(&found.reserved), "{found:?}");
    }

    #[test]
    fn a_proved_change_passes_under_a_recorded_run_of_its_own(requests in requests(), share in 0.3_f64..0.95) {
        let run = run_of(requests.clone());
        let peak = run_peak(&run);
        // The memory of the device is the limit here, instead of a memory fraction.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a share")]
        let capacity = Bytes::new((peak.get() as f64 * share) as u64 / (2 << 20) * (2 << 20));
        let conditions = Conditions { capacity: Some(capacity), ..run.conditions() };
        let Some(found) = autopsy(&run, &conditions, &mut on).unwrap() else { return Ok(()) };
        let failing = usize::try_from(found.failure.request.request).unwrap() - 1;
        prop_assert!(!passes(&requests, failing, "", capacity));
        for change in found.failure.changes {
            match change.kind {
                ChangeKind::Setting(conf) => {
                    prop_assert!(conf.contains("garbage_collection") || passes(&requests, failing, &conf, capacity), "{conf}");
                }
                ChangeKind::Limit(limit) => prop_assert!(passes(&requests, failing, "", limit)),
                ChangeKind::FreeTensors { requests: freed, .. } => {
                    let mut edited = requests.clone();
                    let tensors: Vec<TensorId> = freed.iter().filter_map(|request| {
                        let request = requests[usize::try_from(*request).unwrap() - 1];
                        if let Request::Allocate { tensor, .. } = request { Some(tensor) } else { None }
                    }).collect();
                    edited.splice(failing..failing, tensors.iter().map(|tensor| Request::Free { tensor: *tensor }));
                    prop_assert!(passes(&edited, failing + tensors.len(), "", capacity));
                }
                ChangeKind::OneStream => {
                    let one = requests.iter().map(|request| match *request {
                        Request::Allocate { tensor, size, .. } => {
                            Request::Allocate { tensor, size, stream: found.failure.request.stream }
                        }
                        other => other,
                    });
                    prop_assert!(passes(&one.collect::<Vec<_>>(), failing, "", capacity));
                }
                ChangeKind::Synchronize => {
                    let mut edited = requests.clone();
                    edited.insert(failing, Request::Advance { stream: None });
                    prop_assert!(passes(&edited, failing + 1, "", capacity));
                }
                ChangeKind::DefaultPool => prop_assert!(false, "there are no pools"),
            }
        }
    }
}

fn run_peak(run: &Run) -> Bytes {
    let row = blockyard_lab::replay_under(run, &run.conditions(), 0, &mut crate::on_requests).unwrap();
    row.outcome_at_lowest().unwrap().peak_reserved
}

/// Whether a request and all before it pass on a device of this size.
fn passes(requests: &[Request], request: usize, conf: &str, capacity: Bytes) -> bool {
    let settings = RunSettings {
        title: String::new(),
        config: AllocatorConfig::parse(conf, Release::default()).unwrap(),
        capacity,
    };
    let workload = Workload::from_requests(requests[..=request].to_vec());
    let recording = replay(&workload, &settings, &mut on).unwrap();
    (0..recording.step_count()).all(|step| !matches!(recording.outcome(step), StepOutcome::OutOfMemory(_)))
}
