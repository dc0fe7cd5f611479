//! The verdict beside the answers that it is made of, for runs that went out of memory on an H200 and runs
//! that did not.

use blockyard_lab::{
    ChangeKind, Conditions, FindingTopic, Forecast, MomentName, Run, Verdict, VerdictKind, autopsy,
    try_change, verdict, what_if,
};
use blockyard_record::Bytes;
use blockyard_workload::{Request, Workload};

use crate::oom::{SNAPSHOTS, snapshot};
use crate::{on, program};

fn of_snapshot(name: &str) -> Verdict {
    let run = snapshot(name, 1.0);
    verdict(&run, &run.conditions(), &mut on).unwrap()
}

fn about(found: &Verdict, about: FindingTopic) -> Vec<&str> {
    found
        .answer
        .findings
        .iter()
        .filter(|finding| finding.about == about)
        .map(|finding| finding.text.as_str())
        .collect()
}

#[test]
fn a_leak_is_named_with_its_line_and_what_it_kept() {
    let found = of_snapshot("loss_history");
    assert_eq!(found.answer.kind, VerdictKind::Leak);
    assert_eq!(
        found.answer.headline,
        "out of memory by a leak at `loss_history train.py:26`: each of 136 iterations kept 3 tensors (4 MiB)"
    );
    // The program keeps three losses in each iteration; without those of earlier iterations the request
    // passes.
    let passes = about(&found, FindingTopic::Helps);
    assert_eq!(
        passes[0],
        "with all 415 tensors freed that the growing lines kept from earlier iterations, those of the first two too (554 MiB), the request passes"
    );
    assert!(passes[1].contains("`loss.item()` or `loss.detach()`"), "{passes:?}");
    assert!(passes[2].contains("set_per_process_memory_fraction") && passes.len() == 3, "{passes:?}");
    let grows = about(&found, FindingTopic::Grows);
    assert_eq!(
        grows,
        [
            "`loss_history train.py:26` holds 589.07 MiB at the failure: 544.07 MiB in 408 tensors kept from iterations after the first two, and 45 MiB that do not grow; 136 of the 137 iterations after the first two added to it, of 139 iterations"
        ]
    );
    let less = about(&found, FindingTopic::Shortfall);
    assert!(
        less[0].ends_with("the request passes, until what the iterations keep fills that too"),
        "{less:?}"
    );
    assert_eq!(
        less[1],
        "with 614 MiB that may be reserved the request passes, and iteration 144 runs out of memory"
    );
    let sentence = about(&found, FindingTopic::DependsOnLimit)[0];
    assert!(sentence.starts_with("with expandable_segments:True it depends on the limit"), "{sentence}");
    // A separate group has the settings that fail at every limit.
    assert!(
        about(&found, FindingTopic::DoesNotHelp).iter().all(|text| text.ends_with("the request fails too"))
    );
    // The sentence names one cause. The findings about certainty name the limits, to the byte, for which
    // another cause holds.
    assert!(!about(&found, FindingTopic::Happened)[0].contains("depending on the limit"), "{found:?}");
    let sure = about(&found, FindingTopic::Certainty);
    let other = sure.iter().find(|text| text.contains("the cause is another")).unwrap();
    assert_eq!(
        *other,
        "if the limit is at least 613.07 MiB, the cause is another: fragmentation by live blocks"
    );
}

#[test]
fn frames_of_cpp_are_no_line_of_the_program() {
    // As `_record_memory_history()` records by default: thirty frames of PyTorch's C++ before the first of
    // Python.
    let found = of_snapshot("kept_cpp_frames");
    assert_eq!(found.answer.kind, VerdictKind::Leak);
    assert!(
        found.answer.headline.starts_with(
            "out of memory by a leak at `step train.py:11`: each of 39 iterations kept 1 tensor (32 MiB)"
        ),
        "{}",
        found.answer.headline
    );
    let lines: Vec<&str> = found.answer.held.iter().map(|line| line.line.as_str()).collect();
    assert!(lines.iter().all(|line| !line.contains("malloc") && !line.contains("unwind")), "{lines:?}");
    assert!(lines.contains(&"step train.py:11"), "{lines:?}");
}

#[test]
fn fragmentation_is_no_leak_and_has_a_setting_to_copy() {
    let found = of_snapshot("checkerboard_default");
    assert_eq!(found.answer.kind, VerdictKind::OutOfMemory);
    assert_eq!(
        found.answer.headline,
        "out of memory at `buf train.py:12`, called at `checkerboard_default train.py:17`: 480 MiB cached in 24 separate blocks, the largest 20 MiB: too small for 300 MiB"
    );
    assert_eq!(found.answer.setting.as_deref(), Some("expandable_segments:True"));
    let passes = about(&found, FindingTopic::Helps);
    assert_eq!(
        passes[..2],
        [
            "with expandable_segments:True the request passes, with 29 cudaMalloc, cudaFree and cuMemMap calls in place of 4 and 1 retry in place of 1",
            "with max_split_size_mb:32, 64 or 128 the request also passes, with 81 cudaMalloc and cudaFree calls in place of 4 and 1 retry in place of 1"
        ]
    );
    // The program sets a memory fraction, without which a GPU would have served the request.
    assert!(passes[2].contains("set_per_process_memory_fraction") && passes.len() == 3, "{passes:?}");
}

#[test]
fn a_verdict_says_what_the_other_answers_say() {
    for (name, scale) in SNAPSHOTS {
        let run = snapshot(name, scale);
        let conditions = run.conditions();
        let found = verdict(&run, &conditions, &mut on).unwrap();
        let failure = autopsy(&run, &conditions, &mut on).unwrap();
        assert_eq!(found.autopsy.as_deref(), failure.as_ref(), "{name}");
        let failure = failure.unwrap();
        assert_eq!(found.answer.moment, failure.failure.request.request, "{name}");
        let held: Bytes = found.answer.held.iter().map(|line| line.bytes).sum();
        assert_eq!(
            held, failure.failure.memory.allocated,
            "{name}: what is held adds up to what is allocated"
        );
        assert!(found.answer.held.is_sorted_by(|one, other| one.bytes >= other.bytes), "{name}");
        if let Some(conf) = &found.answer.setting {
            let rows = what_if(&run, &[conditions.and_conf(conf)], 0, &mut on).unwrap().rows;
            let passes = |outcome: Option<&blockyard_lab::Outcome>| {
                let oom = outcome.unwrap().first_oom.as_ref();
                oom.is_none_or(|oom| oom.request > found.answer.moment)
            };
            assert!(
                passes(rows[0].outcome_at_lowest()) && passes(rows[0].outcome_at_highest()),
                "{name}: {conf}"
            );
        }
        assert_eq!(
            found.answer.kind == VerdictKind::Leak,
            name == "loss_history",
            "{name}: {}",
            found.answer.headline
        );
    }
}

#[test]
fn what_is_held_at_the_peak_of_a_run_that_fits_adds_up_to_the_peak() {
    let run = program("gnn_random");
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    let own = what_if(&run, &[run.conditions()], 0, &mut on).unwrap().baseline;
    let own = own.outcome_at_lowest().unwrap();
    let held: Bytes = found.answer.held.iter().map(|line| line.bytes).sum();
    assert_eq!((found.answer.kind, held), (VerdictKind::Fits, own.peak_allocated));
    let (allocated, reserved) = (own.peak_allocated, own.peak_reserved);
    assert_eq!(
        found.answer.headline,
        format!("it fits: at most {allocated} are allocated, and {reserved} reserved")
    );
    assert!(
        about(&found, FindingTopic::Happened)[0]
            .ends_with(&format!("reserved are at most {}", own.peak_reserved))
    );
    // Expandable segments save 3.77 GiB in this run, as on an H200.
    assert_eq!(found.answer.setting.as_deref(), Some("expandable_segments:True"));
    assert!(about(&found, FindingTopic::Helps)[0].contains("3.77 GiB less"), "{found:?}");
}

#[test]
fn a_limit_that_is_given_is_the_verdicts_limit() {
    let run = program("gnn_random");
    let limit = Conditions { limit: Some(Bytes::gib(2)), ..run.conditions() };
    let found = verdict(&run, &limit, &mut on).unwrap();
    let failure = found.autopsy.as_ref().unwrap();
    assert!(found.answer.kind != VerdictKind::Fits && failure.limit.high == Bytes::gib(2), "{found:?}");
    let more =
        failure.failure.changes.iter().find(|change| matches!(change.kind, ChangeKind::Limit(_))).unwrap();
    let tried = try_change(&run, &limit, &more.kind, found.answer.moment, 0, &mut on).unwrap();
    let oom = tried.rows[0].outcome_at_lowest().unwrap().first_oom.as_ref();
    assert!(oom.is_none_or(|oom| oom.request > found.answer.moment), "{oom:?}");
}

/// Eight equal layers are made, and then a training starts that fails: the weights are no leak, and nobody is
/// advised to free them.
#[test]
fn a_model_that_is_made_layer_by_layer_is_no_leak() {
    let text = "repeat 8 as i { a[i] = alloc 100 MiB\n b[i] = alloc 100 MiB\n c[i] = alloc 1 MiB }\n\
                repeat 3 as s { x[s] = alloc 200 MiB\n y[s] = alloc 30 MiB\n free x[s], y[s] }\nlarge = alloc 3 GiB";
    let run = Run::from_workload("layers", Workload::parse(text).unwrap(), "", Bytes::gib(4));
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    assert_eq!(found.answer.kind, VerdictKind::OutOfMemory, "{}", found.answer.headline);
    assert_eq!(about(&found, FindingTopic::Grows), [""; 0]);
    let passes = about(&found, FindingTopic::Helps);
    assert!(!passes.iter().any(|text| text.contains("growing lines")), "{passes:?}");
}

/// Layers that keep tensors for their backward pass look like iterations that keep tensors: below 100
/// repetitions the verdict names both, and no leak.
#[test]
fn a_few_repetitions_may_be_layers() {
    let layers = |count: u32| {
        let text = format!(
            "w = alloc 100 MiB\nrepeat {count} as i {{ a = alloc 30 MiB\n kept[i] = alloc 10 MiB\n free a }}\nlarge = alloc 3500 MiB"
        );
        let run = Run::from_workload("layers", Workload::parse(&text).unwrap(), "", Bytes::gib(4));
        verdict(&run, &run.conditions(), &mut on).unwrap()
    };
    let few = layers(60);
    assert_eq!(few.answer.kind, VerdictKind::OutOfMemory, "{}", few.answer.headline);
    let grows = about(&few, FindingTopic::Grows);
    assert!(
        grows[0].contains("of the same requests, which may be iterations or equal layers of a network"),
        "{grows:?}"
    );
    assert_eq!(layers(120).answer.kind, VerdictKind::Leak);
}

fn runs_of(name: &str) -> Vec<Run> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/snapshots");
    Run::read(name, &std::fs::read(folder.join(name)).unwrap(), &mut on).unwrap()
}

/// The activations of a network that fails in its first forward pass are those of equal layers, and no leak.
#[test]
fn layers_of_a_forward_pass_are_no_leak() {
    let run = runs_of("deep_forward.pickle.gz").remove(0);
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    assert_eq!(found.answer.kind, VerdictKind::OutOfMemory, "{}", found.answer.headline);
    assert!(
        found.answer.headline.contains("8 equal layers of one forward pass keep 7.05 GiB"),
        "{}",
        found.answer.headline
    );
    let helps = about(&found, FindingTopic::Helps);
    assert!(helps.iter().any(|text| text.contains("torch.utils.checkpoint")), "{helps:?}");
    assert!(!helps.iter().any(|text| text.contains("loss.item()")), "{helps:?}");
}

/// A snapshot without a trace says who holds the memory and what a release would give back. Other questions need
/// requests.
#[test]
fn a_snapshot_without_a_trace_has_a_verdict_about_its_moment() {
    let runs = runs_of("state_only.pickle.gz");
    let found: Vec<Verdict> =
        runs.iter().map(|run| verdict(run, &run.conditions(), &mut on).unwrap()).collect();
    assert!(found.iter().all(|found| found.answer.kind == VerdictKind::StateOnly));
    // The first device has neither segments nor a trace.
    assert_eq!(runs.iter().map(Run::held_at_end).collect::<Vec<_>>(), [Bytes::mib(30)]);
    let held = &found[0].answer.held[0];
    assert_eq!(
        (held.line.as_str(), held.bytes, held.blocks),
        ("weights state_only.py:6", Bytes::mib(30), 30)
    );
    let helps = about(&found[0], FindingTopic::Helps);
    assert!(helps[0].contains("would give back 32 MiB") && helps[0].contains("; 10 MiB stay"), "{helps:?}");
    for run in &runs {
        let none = blockyard_lab::leaks(run, &mut on).unwrap_err();
        assert!(matches!(none, blockyard_lab::LabError::NoTrace), "{none}");
        assert!(autopsy(run, &run.conditions(), &mut on).is_err());
        assert!(what_if(run, &[run.conditions()], 0, &mut on).is_err());
    }
}

/// The verdict of a run that grows and has not yet run out of memory names the growth, and the iteration that
/// will fail.
#[test]
fn a_run_that_fits_and_grows_says_which_iteration_will_fail() {
    let text = "repeat 120 as i { a = alloc 30 MiB\n kept[i] = alloc 10 MiB\n free a }";
    let run = Run::from_workload("leak", Workload::parse(text).unwrap(), "", Bytes::gib(4));
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    assert_eq!(found.answer.kind, VerdictKind::Grows, "{}", found.answer.headline);
    assert_eq!(
        found.answer.headline,
        "it fits so far, and grows at `line 2`: each of 118 iterations kept 1 tensor (10 MiB); iteration 407 runs out of memory"
    );
    let Some(Forecast::Fails { iteration, size, .. }) = found.answer.forecast else { panic!("{found:?}") };
    let grows = about(&found, FindingTopic::Grows);
    assert_eq!(
        grows[1],
        "if the iterations go on as the last ones did, iteration 407 runs out of the 4 GiB that may be reserved, when 10 MiB are asked for by `line 2`"
    );
    let fails = |iterations: u64| {
        let text = text.replace("120", &iterations.to_string());
        let run = Run::from_workload("leak", Workload::parse(&text).unwrap(), "", Bytes::gib(4));
        let failed = verdict(&run, &run.conditions(), &mut on).unwrap().autopsy?.failure.request;
        Some(failed.size)
    };
    assert_eq!((fails(iteration - 1), fails(iteration)), (None, size));
    // Blocks that every iteration frees are no growth.
    let text = text.replace("free a", "free a, kept[i]");
    let run = Run::from_workload("none", Workload::parse(&text).unwrap(), "", Bytes::gib(4));
    assert_eq!(verdict(&run, &run.conditions(), &mut on).unwrap().answer.kind, VerdictKind::Fits);
}

/// A setting that postpones a failure is not recommended.
#[test]
fn a_leak_outranks_rounding_and_a_setting_that_postpones_is_not_recommended() {
    // The division rounds each tensor up, so that the default settings pass the request that fails.
    let text =
        "repeat 60 as i { step \"iteration {i}\"\n a = alloc 30 MiB\n kept[i] = alloc 10 MiB\n free a }";
    let workload = Workload::parse(text).unwrap();
    let run = Run::from_workload("rounded", workload, "roundup_power2_divisions:2", Bytes::mib(402));
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    assert_eq!(found.answer.kind, VerdictKind::Leak, "{}", found.answer.headline);
    assert!(found.answer.headline.starts_with("out of memory by a leak at "), "{}", found.answer.headline);
    assert_eq!(found.answer.setting, None);
    let helps = about(&found, FindingTopic::Helps);
    assert!(helps.iter().any(|text| text.contains("runs out of memory")), "{helps:?}");
    let in_vain = about(&found, FindingTopic::DoesNotHelp);
    assert!(
        in_vain.contains(&"none of these settings lets the run finish: each only postpones the failure"),
        "{in_vain:?}"
    );
}

/// The run fits on the GPU that the verdict names, and does not fit on any GPU that the verdict calls too
/// small.
#[test]
fn the_smallest_gpu_that_holds_a_run_is_named() {
    let text = "a = alloc 21 GiB";
    let run = Run::from_workload("one", Workload::parse(text).unwrap(), "", Bytes::gib(80));
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    let gpus = about(&found, FindingTopic::Gpus)[1];
    let words = "the run fits on NVIDIA L4 (21.31 GiB) and every larger GPU, and not on a smaller one: Tesla T4 (14.01 GiB); \
                 a device of 21.8 GiB in all is enough";
    assert_eq!(gpus, words);
}

/// A run that reserves more than a GPU has may still fit on that GPU, where the allocator releases cached
/// memory: the sentence says so, and agrees with the device size that is enough.
#[test]
fn a_run_that_releases_its_cache_fits_on_a_smaller_gpu() {
    let text = "a = alloc 2 GiB; free a; b = alloc 13 GiB";
    let run = Run::from_workload("one", Workload::parse(text).unwrap(), "", Bytes::gib(80));
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    let gpus = about(&found, FindingTopic::Gpus)[1];
    let words = "the run fits on Tesla T4 (14.01 GiB) and every larger GPU, where it releases cached memory on the way; \
                 a device of 13.8 GiB in all is enough, where it releases cached memory on the way";
    assert_eq!(gpus, words);
}

/// Where the memory of the device is the limit, the GPU is named on which the request passes.
#[test]
fn a_failed_run_names_the_gpu_on_which_the_request_passes() {
    let run = Run::from_workload("one", Workload::parse("a = alloc 15 GiB").unwrap(), "", Bytes::gib(14));
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    let words = "the smallest known GPU on which the request passes is NVIDIA L4, of which 21.31 GiB are left for PyTorch";
    assert_eq!(about(&found, FindingTopic::Gpus), [words]);
}

/// Where equal iterations lead to the failure, the rest of the iteration that failed is known, and what comes then.
#[test]
fn the_gpu_after_a_failure_holds_the_whole_iteration() {
    let text = "w = alloc 100 MiB\nrepeat 60 as i { step \"iteration {i}\"\n a = alloc 200 MiB\n kept[i] = alloc 300 MiB\n free a }";
    let run = Run::from_workload("grows", Workload::parse(text).unwrap(), "", Bytes::gib(14));
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    let gpus = about(&found, FindingTopic::Gpus);
    let words = "the smallest known GPU on which the iteration that failed passes is NVIDIA L4, of which 21.31 GiB are left for PyTorch, and iteration ";
    assert!(gpus[0].starts_with(words) && gpus[0].ends_with(" runs out of memory"), "{gpus:?}");
}

/// The sentence about the latest release agrees with a replay under that release.
#[test]
fn another_release_is_replayed() {
    for (name, scale) in SNAPSHOTS {
        let run = snapshot(name, scale);
        let conditions = run.conditions();
        let found = verdict(&run, &conditions, &mut on).unwrap();
        let finding =
            found.answer.findings.iter().find(|finding| finding.about == FindingTopic::Releases).unwrap();
        let release = finding.release.as_deref().unwrap().parse().unwrap();
        let rows = what_if(&run, &[conditions.and_release(release)], 0, &mut on).unwrap().rows;
        assert_eq!(!rows[0].fits(), finding.text.contains("the replay runs out of memory, too"), "{name}");
    }
}

/// Each iteration keeps a tensor of `kept`, and the growth begins after the first two: the sentence about the
/// growth has the moments of its first and its last tensor, and the sentences about settings that pass have
/// these settings.
#[test]
fn sentences_lead_to_their_moments() {
    let text =
        "repeat 120 as i { a = alloc 30 MiB\n kept[i] = alloc 10 MiB\n free a }\nlarge = alloc 3500 MiB";
    let run = Run::from_workload("layers", Workload::parse(text).unwrap(), "", Bytes::gib(4));
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    let grows: Vec<_> =
        found.answer.findings.iter().filter(|finding| finding.about == FindingTopic::Grows).collect();
    let [first, last] = grows[0].moments.as_slice() else { panic!("{grows:?}") };
    let is_kept = |request: u64| {
        let request = run.requests()[usize::try_from(request).unwrap() - 1];
        matches!(request, Request::Allocate { size, .. } if size == Bytes::mib(10))
    };
    assert!(is_kept(first.request) && is_kept(last.request), "{first:?} {last:?}");
    assert_eq!((first.name, last.name), (MomentName::FirstKept, MomentName::LastKept));
    // Each iteration makes three requests. Blocks that the first two iterations keep are no growth.
    assert_eq!((first.request, first.step, last.step), (8, Some(3), Some(120)));
    assert_eq!((last.request, last.allocations_after), (3 * 119 + 2, 1), "only the large one follows");
    let happened = &found.answer.findings[0].moments;
    assert_eq!((happened[0].name, happened[0].request), (MomentName::Failure, found.answer.moment));
    let line = found.answer.held.iter().find(|line| line.blocks == 120).unwrap();
    assert_eq!(line.moments.iter().map(|moment| moment.request).collect::<Vec<_>>(), [2, last.request]);
    for (name, scale) in SNAPSHOTS {
        let run = snapshot(name, scale);
        let found = verdict(&run, &run.conditions(), &mut on).unwrap();
        for finding in &found.answer.findings {
            let is_named = |conf: &String| finding.text.contains(conf.split(':').next().unwrap());
            assert!(finding.settings.iter().all(is_named), "{name}: {finding:?}");
        }
        let proved = found.answer.findings.iter().filter(|finding| finding.about == FindingTopic::Helps);
        let proved: Vec<&String> = proved.flat_map(|finding| &finding.settings).collect();
        assert_eq!(found.answer.setting.as_ref(), proved.first().copied(), "{name}");
    }
}

/// A recording that ends at its failure does not have the requests after it: only a run that goes on after
/// the failure is said to fit as a whole.
#[test]
fn a_recording_that_ends_at_the_failure_is_not_said_to_fit_as_a_whole() {
    for (name, scale) in SNAPSHOTS {
        let run = snapshot(name, scale);
        assert!(run.ends_at_failure(), "{name}");
        let conditions = run.conditions();
        let failure = autopsy(&run, &conditions, &mut on).unwrap().unwrap();
        for change in &failure.failure.changes {
            let tried =
                try_change(&run, &conditions, &change.kind, failure.failure.request.request, 0, &mut on)
                    .unwrap();
            let row = &tried.rows[0];
            assert!(!row.fits() || row.ends_at_failure, "{name}: {change:?}");
            assert!(row.passes_sentence(None, None).starts_with("this request passes; "), "{name}");
        }
    }
    let text = "a = alloc 3 GiB\nb = alloc 2 GiB\nfree a\nc = alloc 1 GiB";
    let run = Run::from_workload("goes on", Workload::parse(text).unwrap(), "", Bytes::gib(4));
    let failure = autopsy(&run, &run.conditions(), &mut on).unwrap().unwrap();
    let change =
        failure.failure.changes.iter().find(|change| matches!(change.kind, ChangeKind::Limit(_))).unwrap();
    let tried =
        try_change(&run, &run.conditions(), &change.kind, failure.failure.request.request, 0, &mut on)
            .unwrap();
    assert!(tried.rows[0].fits());
    assert_eq!(tried.rows[0].passes_sentence(None, None), "now the whole run fits");
}

/// The line of a helper function says little, so the holder's name has the line that calls the helper too.
#[test]
fn the_caller_of_a_helper_is_named_beside_what_it_holds() {
    let found = of_snapshot("long_lived_in_buffers");
    assert_eq!(found.answer.held[0].line, "buf train.py:12");
    assert_eq!(found.answer.held[0].text(), "buf train.py:12, called at long_lived_in_buffers train.py:33");
    let grows = about(&found, FindingTopic::Grows);
    assert!(
        grows[0].starts_with("`buf train.py:12`, called at `long_lived_in_buffers train.py:33` holds "),
        "{grows:?}"
    );
    assert!(
        found.answer.headline.contains("kept 1 tensor (6 MiB)") && !found.answer.headline.contains("leak"),
        "{}",
        found.answer.headline
    );
}

/// By a replay, the run fits in the memory that the verdict calls enough, and not in a tenth of a GiB less.
/// With the recommended setting less memory is enough.
#[test]
fn the_least_device_that_would_do_does() {
    let run = program("gnn_random");
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    let gpus = about(&found, FindingTopic::Gpus);
    let device = |text: &str| {
        let said = text.split(" a device of ").nth(1).unwrap().split(" GiB").next().unwrap();
        let tenths: f64 = said.parse::<f64>().unwrap() * 10.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred")]
        let tenths = tenths.round() as u64;
        tenths
    };
    let fits = |conf: &str, tenths: u64| {
        let all = Bytes::new(tenths * Bytes::gib(1).get() / 10);
        let left = all.saturating_sub(blockyard_gpus::context_and_libraries());
        let on_it = Conditions { capacity: Some(left), ..Conditions::with_conf(conf) };
        what_if(&run, &[on_it], 0, &mut on).unwrap().rows[0].fits()
    };
    let (own, best) = (device(gpus[1]), device(gpus[2]));
    assert!(fits("", own) && !fits("", own - 1), "{gpus:?}");
    let conf = found.answer.setting.as_deref().unwrap();
    assert!(gpus[2].starts_with(&format!("with {conf}")) && fits(conf, best) && best < own, "{gpus:?}");
}

#[test]
fn a_summary_has_the_cause_one_change_of_each_kind_and_who_held_the_memory() {
    let found = of_snapshot("checkerboard_default");
    let summary = found.summary("run.pickle");
    let lines: Vec<&str> = summary.lines().collect();
    assert_eq!(lines[0], format!("run.pickle: {}", found.answer.headline));
    let helps = lines.iter().position(|line| *line == "What helps:").unwrap();
    let held = lines.iter().position(|line| *line == "What held the memory at the failure:").unwrap();
    assert!((2..=4).contains(&(held - helps)), "{summary}");
    let changes = &found.autopsy.as_ref().unwrap().failure.changes;
    assert!(lines[helps + 1].contains(&changes[0].sentence), "{summary}");
    let first = &found.answer.held[0];
    assert!(lines[held + 1].starts_with(&format!("- {} in ", first.bytes)), "{summary}");
    assert!(lines[held + 1].ends_with(&first.text()), "{summary}");
    assert!(lines.len() - held <= 7, "{summary}");
}
