//! Differences between runs, and growth inside of one run.

use blockyard_lab::{
    Diff, IterationSource, LabError, PeakDiff, Run, VerdictKind, diff, diff_iterations, leaks,
};
use blockyard_record::Bytes;
use blockyard_workload::Workload;

use crate::code_fixes::{BACKWARD, DATA, LAYER, LOSS, Program, STEP};
use crate::oom::snapshot;
use crate::{on, program};

fn typed(text: &str) -> Run {
    Run::from_workload("typed", Workload::parse(text).unwrap(), "", Bytes::gib(4))
}

pub(crate) fn adds_up(peak: &PeakDiff) -> bool {
    peak.terms.iter().map(|part| part.change).sum::<i64>() == peak.after.signed() - peak.before.signed()
}

fn compared(before: &Run, after: &Run) -> Diff {
    let found = diff(before, after, &mut on).unwrap();
    assert!(adds_up(&found.allocated) && adds_up(&found.reserved), "{found:?}");
    found
}

#[test]
fn three_recordings_of_one_program_have_the_same_requests_and_other_peaks() {
    let (default, expandable) = (program("gnn_random"), program("gnn_random.expandable_segments"));
    let found = compared(&default, &expandable);
    assert_eq!((found.alignment.only_before, found.alignment.only_after), (0, 0));
    assert_eq!(found.alignment.same, 2_977);
    assert_eq!((found.reserved.before.get(), found.reserved.after.get()), (6_589_251_584, 2_545_942_528));
    assert_eq!(found.reserved.terms[0].site, ["cached"]);
}

#[test]
fn one_more_tensor_is_the_top_term() {
    let text = "repeat 20 as i { a = alloc 3 MiB; b = alloc 5 MiB\n EXTRA\n c = alloc 7 MiB\n free a, b, c }";
    let before = typed(&text.replace("EXTRA", ""));
    let after = typed(&text.replace("EXTRA", "x[i] = alloc 30 MiB"));
    let found = compared(&before, &after);
    assert_eq!((found.alignment.same, found.alignment.only_before, found.alignment.only_after), (60, 0, 20));
    assert_eq!(found.alignment.first_only_after, Some(3));
    assert_eq!(found.allocated.terms.len(), 1, "{found:?}");
    assert_eq!(
        (found.allocated.terms[0].site[0].as_str(), found.allocated.terms[0].change),
        ("line 2", 600 << 20)
    );
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let run = program("multistream");
    let found = compared(&run, &run);
    assert!(found.allocated.terms.is_empty() && found.reserved.terms.is_empty());
    assert_eq!(found.alignment.same, run.allocations() as u64);
}

#[test]
fn what_is_kept_in_every_step_grows() {
    let run = typed(
        "w = alloc 100 MiB\nrepeat 10 as i { step \"iteration {i}\"\n a = alloc 30 MiB\n kept[i] = alloc 1 MiB\n free a }",
    );
    let found = leaks(&run, &mut on).unwrap();
    assert_eq!(found.answer.steps, IterationSource::Markers);
    assert_eq!(found.answer.growing.len(), 1, "{found:?}");
    assert_eq!(
        (found.answer.growing[0].site[0].as_str(), found.answer.growing[0].growth),
        ("line 4", Bytes::mib(9))
    );
}

#[test]
fn two_steps_of_one_run_are_compared_to_the_byte() {
    let run = typed(
        "w = alloc 100 MiB\nrepeat 10 as i { step \"iteration {i}\"\n a = alloc 30 MiB\n kept[i] = alloc 1 MiB\n free a }",
    );
    // The requests before the first marker are one more iteration.
    let found = diff_iterations(&run, 3, 8, &mut on).unwrap();
    assert!(adds_up(&found.allocated) && adds_up(&found.reserved), "{found:?}");
    assert_eq!((found.alignment.same, found.alignment.only_before, found.alignment.only_after), (2, 0, 0));
    let top = &found.allocated.terms[0];
    assert_eq!(
        (top.site[0].as_str(), top.change, top.count_before, top.count_after),
        ("line 4", 5 << 20, 2, 7)
    );
    assert_eq!(found.allocated.terms.len(), 1, "{found:?}");
    for (first, second) in [(0, 1), (1, 12)] {
        let refused = diff_iterations(&run, first, second, &mut on);
        assert!(matches!(refused, Err(LabError::NoIteration { iterations: 11, .. })), "{refused:?}");
    }
}

#[test]
fn steps_are_found_by_repetition_where_nothing_marks_them() {
    let run =
        typed("w = alloc 100 MiB\nrepeat 10 as i {\n a = alloc 30 MiB\n kept[i] = alloc 1 MiB\n free a }");
    let found = leaks(&run, &mut on).unwrap();
    assert_eq!((found.answer.steps, found.answer.boundaries.len()), (IterationSource::Repetition, 10));
    assert_eq!(found.answer.growing.len(), 1, "{found:?}");
    let steady =
        typed("w = alloc 100 MiB\nrepeat 10 as i {\n a = alloc 30 MiB\n b = alloc 1 MiB\n free a, b }");
    assert!(leaks(&steady, &mut on).unwrap().answer.growing.is_empty());
}

#[test]
fn the_graphs_that_kept_losses_hold_are_found_in_a_snapshot() {
    let found = leaks(&snapshot("loss_history", 1.0), &mut on).unwrap();
    assert_eq!(found.answer.steps, IterationSource::Repetition);
    assert!(!found.answer.growing.is_empty());
    assert!(
        found.answer.growing[0].site.iter().any(|frame| frame.starts_with("loss_history")),
        "{:?}",
        found.answer.growing[0]
    );
}

/// FSDP and NCCL mark each of their collectives; only the program's own markers count as iterations.
#[test]
fn markers_within_a_step_are_no_steps() {
    let data = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/fixtures/snapshots/rank0.pickle.gz"
    ))
    .unwrap();
    let file =
        blockyard_pytorch::snapshot::read(&data[..], &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let run = Run::from_snapshot("rank0", &file, &mut on).unwrap().remove(0);
    let found = leaks(&run, &mut on).unwrap();
    // The requests before the first marker are one more iteration.
    assert_eq!((found.answer.steps, found.answer.boundaries.len()), (IterationSource::Markers, 7));
    assert!(found.answer.growing.is_empty(), "{:?}", found.answer.growing);
}

/// One line allocates the same size three times, frees two blocks and keeps one: neither a size nor a line
/// tells where an iteration begins.
#[test]
fn a_loop_at_one_line_is_found_by_its_period() {
    let found = leaks(&snapshot("long_lived_in_buffers", 1.0), &mut on).unwrap();
    assert_eq!((found.answer.steps, found.answer.boundaries.len()), (IterationSource::Repetition, 60));
    // Sixty repetitions may also be layers.
    assert!(!found.has_known_iterations);
    let [growing] = found.answer.growing.as_slice() else { panic!("{found:?}") };
    assert_eq!((growing.live.last(), &found.allocations[..]), (Some(&Bytes::mib(360)), &[58][..]));
}

/// Healthy trainings do not grow, and neither does a model whose equal parameters are made by one line.
#[test]
fn healthy_runs_have_no_period_that_grows() {
    for name in ["gpt2_varlen", "resnet50_amp", "gnn_random", "multistream"] {
        let found = leaks(&program(name), &mut on).unwrap();
        assert!(
            found.answer.growing.is_empty() || !found.has_known_iterations,
            "{name}: {:?}",
            found.answer.growing
        );
        let verdict = blockyard_lab::verdict(&program(name), &program(name).conditions(), &mut on).unwrap();
        assert_eq!(
            verdict.answer.kind,
            blockyard_lab::VerdictKind::Fits,
            "{name}: {}",
            verdict.answer.headline
        );
    }
    let parameters = typed("repeat 60 as i { w[i] = alloc 4 MiB }");
    assert_eq!(leaks(&parameters, &mut on).unwrap().answer.steps, IterationSource::Parts);
    // Both blocks of each equal pair are freed, in reverse order: nothing grows.
    let steady = typed("repeat 60 as i { a = alloc 4 MiB; b = alloc 4 MiB; free b, a }");
    assert!(leaks(&steady, &mut on).unwrap().answer.growing.is_empty());
}

/// The call sites of one line are summed, so that the line with most of a change is named, and the sums add
/// up as the sites do.
#[test]
fn a_change_is_summed_by_line() {
    let rank = |name: &str| {
        let path =
            format!("{}/../../../tests/fixtures/snapshots/{name}.pickle.gz", env!("CARGO_MANIFEST_DIR"));
        let data = std::fs::read(path).unwrap();
        let file = blockyard_pytorch::snapshot::read(&data[..], &mut |_| std::ops::ControlFlow::Continue(()))
            .unwrap();
        Run::from_snapshot(name, &file, &mut on).unwrap().remove(0)
    };
    let found = compared(&rank("rank1"), &rank("rank0"));
    for peak in [&found.allocated, &found.reserved] {
        let lines = peak.by_line();
        let sum = |changes: &mut dyn Iterator<Item = i64>| changes.sum::<i64>();
        assert_eq!(
            sum(&mut lines.iter().map(|line| line.change)),
            sum(&mut peak.terms.iter().map(|part| part.change))
        );
        let mut names: Vec<&str> = lines.iter().map(|line| line.line.as_str()).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "a line stands once: {lines:?}");
        assert!(lines.is_sorted_by(|one, other| one.change.abs() >= other.change.abs()), "{lines:?}");
    }
}

/// A training whose iterations may differ: each keeps its loss until the next one has made its own.
#[derive(Default)]
struct Trained {
    program: Program,
    iterations: usize,
    loss: Option<usize>,
}

impl Trained {
    fn begin(&mut self) {
        self.iterations += 1;
        self.program.mark(self.iterations);
    }

    /// A forward and a backward pass of four layers, which keep blocks of these sizes.
    fn pass(&mut self, mib: u64) {
        let data = self.program.alloc(mib, DATA);
        let kept: Vec<usize> = (0..4).map(|_| self.program.alloc(mib, LAYER)).collect();
        let loss = self.program.alloc(mib, LOSS);
        self.program.free(self.loss.replace(loss));
        for layer in kept.into_iter().rev() {
            let gradient = self.program.alloc(mib, BACKWARD);
            self.program.free([gradient, layer]);
        }
        self.program.free([data]);
    }

    fn step(&mut self) {
        let temporary = self.program.alloc(22, STEP);
        self.program.free([temporary]);
    }

    fn train(mut self, sizes: &[u64]) -> Self {
        for mib in sizes {
            self.begin();
            self.pass(*mib);
            self.step();
        }
        self
    }
}

const KEPT: &str = "keep train.py:40 < <module> train.py:50";

/// What an iteration takes more than those before is no leak, as long as nothing of earlier iterations is kept.
#[test]
fn a_run_that_takes_more_in_its_last_iterations_is_no_leak() {
    let trained = |sizes: &[u64]| Trained::default().train(sizes);
    let mut evaluated = trained(&[24; 6]);
    for _ in 0..20 {
        evaluated.program.alloc(40, "predict train.py:60 < <module> train.py:61");
    }
    let mut accumulated = Trained::default();
    for size in [24, 24, 24, 24, 120] {
        accumulated.begin();
        for _ in 0..4 {
            accumulated.pass(size);
        }
        accumulated.step();
    }
    let mut cached = trained(&[24, 24]);
    cached.program.alloc(200, KEPT);
    let cached = cached.train(&[24, 24, 24, 100]);
    for (name, program, limit) in [
        ("one long batch", trained(&[24, 24, 24, 192]), 700),
        ("lengths that grow", trained(&[24, 32, 48, 64, 96, 128, 192]), 700),
        ("warm-up, then larger", trained(&[24, 24, 24, 100, 100, 100]), 690),
        ("a larger last batch", trained(&[24, 24, 24, 24, 24, 24, 120]), 500),
        ("evaluation at the end", evaluated, 500),
        ("gradients added up", accumulated, 500),
        ("a cache that is filled once", cached, 700),
    ] {
        let found = program.program.verdict_under(Some(Bytes::mib(limit)));
        let (kind, headline) = (found.answer.kind, &found.answer.headline);
        assert_eq!(kind, VerdictKind::OutOfMemory, "{name}: {headline}");
        assert!(!headline.contains("leak") && !headline.contains("growth"), "{name}: {headline}");
    }
    let mut leaking = Trained::default();
    for _ in 0..10 {
        leaking = leaking.train(&[24]);
        leaking.program.alloc(40, KEPT);
    }
    let found = leaking.program.verdict_under(Some(Bytes::mib(500)));
    assert_eq!(found.answer.kind, VerdictKind::Leak, "{}", found.answer.headline);
}
