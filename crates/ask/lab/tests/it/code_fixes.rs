//! What changes of the code would take, for runs whose peaks are added up by hand. All sizes are in MiB, and so
//! large that each block is a segment.

use blockyard_lab::{ChangeKind, CodeFix, CodeFixKind, Conditions, RestSource, Run, Verdict, verdict};
use blockyard_record::Bytes;
use serde_json::{Value, json};

use crate::on;

const MIB: u64 = 1 << 20;

const BUILD: &str = "_apply torch/nn/modules/module.py:900 < <module> train.py:3";
pub(crate) const DATA: &str = "batch train.py:5 < <module> train.py:30";
pub(crate) const LAYER: &str = "forward torch/nn/modules/linear.py:134 < _call_impl torch/nn/modules/module.py:1790 < forward net.py:7 < _call_impl torch/nn/modules/module.py:1790 < run net.py:20 < <module> train.py:31";
const OUTPUT: &str =
    "forward net.py:8 < _call_impl torch/nn/modules/module.py:1790 < run net.py:20 < <module> train.py:31";
const LOGITS: &str =
    "forward torch/nn/modules/linear.py:134 < _call_impl torch/nn/modules/module.py:1790 < loss train.py:8";
pub(crate) const LOSS: &str = "cross_entropy torch/nn/functional.py:3504 < loss train.py:9";
pub(crate) const BACKWARD: &str = "";
const FIRST_STATE: &str = "_init_group torch/optim/adam.py:178 < <module> train.py:33";
const SECOND_STATE: &str = "_init_group torch/optim/adam.py:182 < <module> train.py:33";
pub(crate) const STEP: &str = "_multi_tensor_adam torch/optim/adam.py:791 < <module> train.py:33";

/// The snapshot of a program. A freed block is given to the next request of its size.
#[derive(Default)]
pub(crate) struct Program {
    trace: Vec<Value>,
    markers: Vec<Value>,
    /// The address, the size and whether it is live, of each block.
    blocks: Vec<(u64, u64, bool)>,
}

impl Program {
    fn entry(&mut self, action: &str, addr: u64, size: u64, stack: &str) {
        let frame = |frame: &str| {
            let (name, place) = frame.split_once(' ').unwrap();
            let (file, line) = place.rsplit_once(':').unwrap();
            json!({"name": name, "filename": file, "line": line.parse::<u32>().unwrap()})
        };
        let frames: Vec<Value> = stack.split(" < ").filter(|frame| !frame.is_empty()).map(frame).collect();
        let (size, time) = (size * MIB, self.trace.len() + 1);
        self.trace.push(json!({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time, "frames": frames}));
    }

    /// Marks the beginning of an iteration.
    pub(crate) fn mark(&mut self, iteration: usize) {
        let name = format!("iteration {iteration}");
        self.markers
            .push(json!({"stage": "START", "name": name, "device": 0, "time_us": self.trace.len() + 1}));
    }

    /// Allocates a block; returns its place.
    pub(crate) fn alloc(&mut self, mib: u64, stack: &str) -> usize {
        let cached = self.blocks.iter().position(|(_, size, is_live)| *size == mib && !is_live);
        let place = cached.unwrap_or_else(|| {
            let addr = 0x7000_0000_0000 + self.blocks.len() as u64 * 1024 * MIB;
            self.blocks.push((addr, mib, true));
            self.entry("segment_alloc", addr, mib, stack);
            self.blocks.len() - 1
        });
        self.blocks[place].2 = true;
        self.entry("alloc", self.blocks[place].0, mib, stack);
        place
    }

    fn allocs(&mut self, count: usize, mib: u64, stack: &str) -> Vec<usize> {
        (0..count).map(|_| self.alloc(mib, stack)).collect()
    }

    pub(crate) fn free(&mut self, places: impl IntoIterator<Item = usize>) {
        for place in places {
            let (addr, size, _) = self.blocks[place];
            self.blocks[place].2 = false;
            self.entry("free_requested", addr, size, "");
            self.entry("free_completed", addr, size, "");
        }
    }

    fn verdict(&self) -> Verdict {
        self.verdict_under(None)
    }

    /// The program that fails at the last allocation of this size, at place `last` from the end.
    fn failing_at(&self, mib: u64, last: usize) -> Self {
        let is_wanted = |entry: &&Value| entry["action"] == "alloc" && entry["size"] == mib * MIB;
        let failed = self.trace.iter().rev().filter(is_wanted).nth(last).unwrap();
        let at = self.trace.iter().position(|entry| entry == failed).unwrap();
        let mut trace = self.trace[..=at].to_vec();
        trace[at]["action"] = json!("oom");
        trace[at]["addr"] = json!(0);
        let of = |addr: u64| {
            trace.iter().filter(move |entry| entry["addr"] == addr && entry["action"] != "free_requested")
        };
        let blocks = self.blocks.iter().filter(|(addr, ..)| of(*addr).next().is_some());
        let blocks = blocks.map(|(addr, mib, _)| {
            (*addr, *mib, of(*addr).next_back().is_some_and(|entry| entry["action"] == "alloc"))
        });
        Self { blocks: blocks.collect(), markers: self.markers.clone(), trace: trace.clone() }
    }

    fn segments(&self, device: usize) -> Vec<Value> {
        self.blocks
            .iter()
            .map(|(address, mib, is_live)| {
                let (size, held) = (mib * MIB, if *is_live { mib * MIB } else { 0 });
                let state = if *is_live { "active_allocated" } else { "inactive" };
                json!({"device": device, "address": address, "total_size": size, "allocated_size": held,
                    "active_size": held, "requested_size": held, "stream": 0, "segment_type": "large",
                    "blocks": [{"address": address, "size": size, "requested_size": size, "state": state, "frames": []}]})
            })
            .collect()
    }

    pub(crate) fn verdict_under(&self, limit: Option<Bytes>) -> Verdict {
        verdict_of_first(&[self], limit)
    }
}

/// The verdict about the first of the devices of one snapshot.
pub(crate) fn verdict_of_first(devices: &[&Program], limit: Option<Bytes>) -> Verdict {
    let segments: Vec<Value> =
        devices.iter().enumerate().flat_map(|(device, program)| program.segments(device)).collect();
    let traces: Vec<&Vec<Value>> = devices.iter().map(|program| &program.trace).collect();
    let markers: Vec<&Value> = devices.iter().flat_map(|program| &program.markers).collect();
    let snapshot =
        json!({"segments": segments, "device_traces": traces, "external_annotations": markers}).to_string();
    let run = Run::read("train.json", snapshot.as_bytes(), &mut on).unwrap().remove(0);
    verdict(&run, &Conditions { limit, ..run.conditions() }, &mut on).unwrap()
}

/// How a program trains: what differs between the tests.
struct Training {
    weights: usize,
    layers: usize,
    frees_gradients: bool,
    limit: Option<Bytes>,
}

const TRAINING: Training = Training { weights: 2, layers: 4, frees_gradients: true, limit: None };

/// Two iterations. A layer keeps 60 MiB and its output of 20 MiB; a weight has 40 MiB, its gradient, its two
/// states and the temporary of its step as many. The data of an iteration has 20 MiB.
fn train(training: &Training) -> Verdict {
    program(training).verdict_under(training.limit)
}

fn program(training: &Training) -> Program {
    let mut program = Program::default();
    program.allocs(training.weights, 40, BUILD);
    let (mut data, mut gradients) = (Vec::new(), Vec::new());
    for iteration in 0..2 {
        let new = program.alloc(20, DATA);
        program.free(std::mem::replace(&mut data, vec![new]));
        let mut kept = Vec::new();
        for _ in 0..training.layers {
            kept.push([program.alloc(60, LAYER), program.alloc(20, OUTPUT)]);
        }
        let mut before = None;
        for [inner, output] in kept.into_iter().rev() {
            let gradient = program.alloc(20, BACKWARD);
            program.free(before.replace(gradient));
            program.free([output, inner]);
        }
        program.free(before);
        let made = program.allocs(training.weights, 40, BACKWARD);
        if gradients.is_empty() {
            gradients = made;
        } else {
            program.free(made);
        }
        if iteration == 0 {
            program.allocs(training.weights, 40, FIRST_STATE);
            program.allocs(training.weights, 40, SECOND_STATE);
        }
        let temporaries = program.allocs(training.weights, 40, STEP);
        program.free(temporaries);
        if training.frees_gradients {
            program.free(std::mem::take(&mut gradients));
        }
    }
    program
}

fn fix(verdict: &Verdict, kind: CodeFixKind) -> Option<&CodeFix> {
    verdict.answer.code_fixes.iter().find(|fix| fix.kind == kind)
}

/// The MiB that a change takes, and the MiB that are then allocated at the peak.
fn taken(verdict: &Verdict, kind: CodeFixKind) -> Option<(u64, u64)> {
    fix(verdict, kind).map(|fix| (fix.bytes.get() / MIB, fix.peak_allocated.get() / MIB))
}

/// The peak is in the second backward pass: 80 of weights, 160 of states, 20 of data, 320 of layers and 20 of a
/// gradient, so 600.
#[test]
fn checkpointed_layers_keep_their_outputs_and_run_again_one_by_one() {
    let found = train(&TRAINING);
    // 240 of weights and states, 20 of data, 80 of outputs, 60 of one layer, 20 of a gradient.
    assert_eq!(taken(&found, CodeFixKind::Checkpoint), Some((180, 420)));
    let fix = fix(&found, CodeFixKind::Checkpoint).unwrap();
    assert_eq!(fix.lines, ["run net.py:20"]);
    assert_eq!(
        fix.sentence,
        "checkpointing each of the 4 layers that `run net.py:20` calls, which keep 240 MiB for the backward pass besides their outputs: about 180 MiB less at the peak, 420 MiB allocated in place of 600 MiB (estimate)"
    );
    assert_eq!(fix.passes, None);
}

#[test]
fn half_the_batch_halves_data_and_layers_and_not_what_belongs_to_weights() {
    // 240 of weights and states, 10 of data, 160 of layers, 10 of a gradient.
    assert_eq!(taken(&train(&TRAINING), CodeFixKind::SmallerBatch), Some((180, 420)));
}

#[test]
fn autocast_halves_the_layers_and_copies_the_weights() {
    // 240 of weights and states, 20 of data, 160 of layers, 40 of copies, 20 of a gradient.
    assert_eq!(taken(&train(&TRAINING), CodeFixKind::Autocast), Some((120, 480)));
}

#[test]
fn fewer_states_take_their_bytes_from_the_peak() {
    let found = train(&TRAINING);
    assert_eq!(taken(&found, CodeFixKind::Momentum), Some((80, 520)));
    assert_eq!(taken(&found, CodeFixKind::EightBitStates), Some((120, 480)));
    assert_eq!(taken(&found, CodeFixKind::OffloadedStates), Some((160, 440)));
    // The peak is not in the step, and gradients are freed.
    assert_eq!(taken(&found, CodeFixKind::NoForeach), None);
    assert_eq!(taken(&found, CodeFixKind::FreedGradients), None);
    let bytes: Vec<Bytes> = found.answer.code_fixes.iter().map(|fix| fix.bytes).collect();
    assert!(bytes.is_sorted_by(|one, other| one >= other), "{bytes:?}");
}

#[test]
fn without_foreach_the_step_has_the_temporaries_of_one_weight() {
    // 160 of weights, 320 of states, 20 of data, 160 of gradients, and 160 or 40 of temporaries.
    let found = train(&Training { weights: 4, layers: 1, ..TRAINING });
    assert_eq!(taken(&found, CodeFixKind::NoForeach), Some((120, 700)));
    assert_eq!(taken(&found, CodeFixKind::Checkpoint), None);
}

#[test]
fn gradients_that_live_through_the_forward_pass_are_freed_after_the_step() {
    // 600 as above, and 80 of gradients.
    let found = train(&Training { frees_gradients: false, ..TRAINING });
    assert_eq!(taken(&found, CodeFixKind::FreedGradients), Some((80, 600)));
}

/// A last layer with a weight of 40 MiB, which gets 20 MiB and makes logits of 160 MiB.
fn train_last_layer() -> Program {
    let mut program = Program::default();
    program.alloc(40, BUILD);
    let (mut data, mut gradient) = (None, None);
    for _ in 0..2 {
        let new = program.alloc(20, DATA);
        program.free(data.replace(new));
        program.free(gradient.take());
        let hidden = program.alloc(20, OUTPUT);
        let logits = program.alloc(160, LOGITS);
        let probabilities = program.alloc(160, LOSS);
        program.free([logits]);
        let of_loss = program.alloc(160, BACKWARD);
        let of_logits = program.alloc(160, BACKWARD);
        program.free([of_loss, probabilities]);
        gradient = Some(program.alloc(40, BACKWARD));
        program.free([of_logits, hidden]);
    }
    program
}

#[test]
fn the_loss_in_chunks_has_the_logits_of_one_chunk() {
    let found = train_last_layer().verdict();
    // 40 of the weight, 20 of data, 20 of what the last layer gets; 480 of three blocks as large as the logits, or
    // 60 of those of one chunk and 40 of the gradient of the chunks before.
    assert_eq!(taken(&found, CodeFixKind::ChunkedLoss), Some((380, 180)));
    assert_eq!(fix(&found, CodeFixKind::ChunkedLoss).unwrap().lines, ["loss train.py:9"]);
}

#[test]
fn a_gradient_of_the_logits_that_finds_no_memory_is_cut_into_chunks_too() {
    // The last of the four blocks of the first iteration that are as large as the logits.
    let found = train_last_layer().failing_at(160, 4).verdict_under(Some(Bytes::mib(500)));
    // 80, and 480 or 60.
    assert_eq!(taken(&found, CodeFixKind::ChunkedLoss), Some((420, 140)));
    assert_eq!(fix(&found, CodeFixKind::ChunkedLoss).unwrap().passes, Some(true));
}

#[test]
fn a_replay_says_whether_the_request_that_failed_passes() {
    let found = train(&Training { limit: Some(Bytes::mib(500)), ..TRAINING });
    assert!(found.autopsy.is_some());
    // As without a limit: the recording goes on.
    assert_eq!(taken(&found, CodeFixKind::Checkpoint), Some((180, 420)));
    let fix = fix(&found, CodeFixKind::Checkpoint).unwrap();
    assert_eq!(fix.passes, Some(true));
    let end = "; in a replay the request that failed then passes, and the run finishes";
    assert!(fix.sentence.ends_with(end), "{}", fix.sentence);
}

/// A run whose recording ends at the failure has the same answers as one that is recorded to its end.
#[test]
fn the_rest_of_the_iteration_is_taken_from_an_earlier_one() {
    let limit = Some(Bytes::mib(500));
    let keeps_gradients = Training { frees_gradients: false, ..TRAINING };
    // The last layer of the second iteration fails, or the second, where gradients are kept.
    for (training, last) in [(TRAINING, 0), (keeps_gradients, 2)] {
        let program = program(&training);
        let (known, found) =
            (program.verdict_under(limit), program.failing_at(60, last).verdict_under(limit));
        assert_eq!(known.autopsy.as_ref().unwrap().index, found.autopsy.as_ref().unwrap().index);
        let numbers = |found: &Verdict| {
            // An iteration that ends before its backward pass does not show that it frees no gradients.
            let is_known = |fix: &&CodeFix| fix.kind != CodeFixKind::FreedGradients;
            let fixes = found.answer.code_fixes.iter().filter(is_known);
            fixes.map(|fix| (fix.kind, fix.bytes, fix.peak_allocated, fix.passes)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&known), numbers(&found));
        let batch = fix(&found, CodeFixKind::SmallerBatch).unwrap();
        assert_eq!(
            batch.rest.as_ref().map(|rest| (rest.from, rest.finishes())),
            Some((RestSource::Iteration(1), true))
        );
        assert!(
            batch.sentence.ends_with(
                "is the most with which the iteration that failed finishes in a replay (estimate); its rest is taken from iteration 1"
            ),
            "{}",
            batch.sentence
        );
    }
}

#[test]
fn a_change_after_which_a_later_request_fails_says_which_and_when() {
    let found = program(&TRAINING).failing_at(60, 0).verdict_under(Some(Bytes::mib(500)));
    let changes = &found.autopsy.as_ref().unwrap().failure.changes;
    let limit = changes.iter().find(|change| matches!(change.kind, ChangeKind::Limit(_))).unwrap();
    let fails = limit.rest.as_ref().unwrap().fails.as_ref().unwrap();
    assert_eq!((fails.requests_later, fails.size), (2, Bytes::mib(20)));
    assert!(
        limit.sentence.ends_with(", and 2 requests later 20 MiB run out of memory"),
        "{}",
        limit.sentence
    );
    // More memory is offered that is enough for the iteration.
    let more = changes.iter().rfind(|change| matches!(change.kind, ChangeKind::Limit(_))).unwrap();
    assert!(more.rest.as_ref().unwrap().finishes(), "{}", more.sentence);
    assert!(found.answer.fixes.contains(&more.sentence));
}

#[test]
fn the_rest_of_a_first_iteration_is_taken_from_another_device() {
    let whole = program(&TRAINING);
    // The last layer of the first iteration: 80 of weights, 20 of data, 240 of layers, and 60.
    let failed = whole.failing_at(60, 4);
    let rest = |other: &Program| {
        let found = verdict_of_first(&[&failed, other], Some(Bytes::mib(380)));
        let batch = fix(&found, CodeFixKind::SmallerBatch).unwrap().rest.clone();
        batch.map(|rest| (rest.from, rest.is_whole))
    };
    assert_eq!(rest(&whole), Some((RestSource::Device(1), true)));
    // The other device fails a few requests later, and another one asked for something else.
    assert_eq!(rest(&whole.failing_at(20, 12)), Some((RestSource::Device(1), false)));
    assert_eq!(rest(&train_last_layer()), None);
}

#[test]
fn without_an_equal_iteration_it_is_said_that_the_rest_is_not_known() {
    let found = train_last_layer().failing_at(160, 4).verdict_under(Some(Bytes::mib(500)));
    let fix = fix(&found, CodeFixKind::SmallerBatch).unwrap();
    assert!(
        fix.sentence.ends_with("a smaller one: `blockyard fit` of the program finds it"),
        "{}",
        fix.sentence
    );
    let is_said = |text: &str| found.answer.findings.iter().any(|finding| finding.text.starts_with(text));
    assert!(is_said("what comes after the failure is not known"));
}

#[test]
fn a_failed_run_has_the_largest_share_of_the_batch_with_which_the_request_passes() {
    let found = train(&Training { limit: Some(Bytes::mib(500)), ..TRAINING });
    // 240 of weights and states, and 360 that grow with the batch: 465 with 5 of 8 parts, and 2 of remainders. With
    // 6 there are 510.
    let fix = fix(&found, CodeFixKind::SmallerBatch).unwrap();
    assert!(fix.sentence.starts_with("5/8 of the batch, "), "{}", fix.sentence);
    assert!(fix.sentence.ends_with("the recording goes on after the failure"), "{}", fix.sentence);
    assert_eq!((fix.passes, fix.peak_allocated), (Some(true), Bytes::mib(467)));
}

#[test]
fn the_fixes_of_a_failed_run_are_the_code_the_batch_and_more_memory() {
    let found = train(&Training { limit: Some(Bytes::mib(500)), ..TRAINING });
    let fixes = &found.answer.fixes;
    let begin = [
        "checkpointing each of the 4 layers",
        "5/8 of the batch",
        "with 101.25 MiB more than the 500 MiB that",
    ];
    assert!(fixes.iter().zip(begin).all(|(fix, begin)| fix.starts_with(begin)), "{fixes:?}");
    assert_eq!(fixes.len(), begin.len());
}

#[test]
fn the_line_that_holds_most_is_cut_into_pieces_where_no_layers_repeat() {
    let mut program = Program::default();
    program.alloc(40, BUILD);
    program.alloc(20, DATA);
    program.allocs(3, 80, OUTPUT);
    program.alloc(60, LAYER);
    let found = program.verdict_under(Some(Bytes::mib(310)));
    let fix = fix(&found, CodeFixKind::InPieces).unwrap();
    // 40, 20 and 60, and an eighth of 240.
    assert_eq!((fix.passes, fix.peak_allocated), (Some(true), Bytes::mib(150)));
    assert_eq!(fix.lines, ["forward net.py:8"]);
}

#[test]
fn nothing_is_said_without_a_backward_pass() {
    let mut program = Program::default();
    program.alloc(40, BUILD);
    for _ in 0..2 {
        let data = program.alloc(20, DATA);
        let layers = program.allocs(4, 60, LAYER);
        program.free(layers);
        program.free([data]);
    }
    assert_eq!(program.verdict().answer.code_fixes, []);
}

#[test]
fn the_devices_of_a_file_are_compared() {
    let (mut one, mut other) = (Program::default(), Program::default());
    one.alloc(40, BUILD);
    one.entry("oom", 0, 40, BUILD);
    other.allocs(2, 40, BUILD);
    other.allocs(3, 60, LAYER);
    let found = verdict_of_first(&[&one, &other], None);
    let devices = found.answer.devices.iter();
    let devices = devices.map(|device| (device.device, device.is_out_of_memory, device.held));
    assert_eq!(devices.collect::<Vec<_>>(), [(0, true, Bytes::mib(40)), (1, false, Bytes::mib(260))]);
    assert_eq!(
        found.answer.findings.first().unwrap().text,
        "of the 2 devices of the file device 0 ran out of memory; at the end device 1 holds most, 260 MiB, which is 220 MiB more than device 0, and `forward net.py:7` holds 180 MiB more there"
    );
    assert_eq!(one.verdict().answer.devices, []);
}
