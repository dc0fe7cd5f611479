//! The stage: properties at every width, and its expected pictures.

use std::collections::BTreeSet;

use blockyard_figure::{
    BreakdownClass, Changes, Mark, Rect, Role, Scene, Series, Size, Stage, StageForm, StageView, Target,
    TargetId, Term, Theme, TimelineView, breakdown_text, describe_target, process_stage_height, stage_height,
    timeline, timeline_text,
};
use blockyard_record::{Bytes, Recording};
use expect_test::expect_file;
use proptest::prelude::*;

use crate::program::{Program, ops, random};

const WIDTHS: [f32; 7] = [300.0, 360.0, 700.0, 980.0, 1366.0, 1860.0, 3700.0];

fn stage_at(recording: &Recording, steps: usize) -> Stage {
    let bounds = steps.checked_sub(1).and_then(|step| recording.step(step));
    let (from, to) = bounds.map_or((0, 0), |step| (step.start, step.end));
    let state = recording.state_at(to).unwrap();
    let changes = Changes::of(recording, from, to);
    Stage::new(&state, recording, &changes, steps.checked_sub(1), &|_| None)
}

fn story() -> Recording {
    let mut program = Program::new(Bytes::mib(64));
    program.alloc("a", Bytes::mib(3)).alloc("b", Bytes::mib(5)).alloc("c", Bytes::mib(11));
    program.free("b").alloc("d", Bytes::kib(1)).alloc("e", Bytes::mib(20)).free("e");
    program.alloc("f", Bytes::mib(50));
    program.recording()
}

#[test]
fn a_device_of_unknown_size_is_said_to_be_one() {
    let texts = |mut program: Program| {
        program.alloc("a", Bytes::mib(3)).alloc("b", Bytes::mib(30)).free("b");
        let state = program.state().clone();
        let recording = program.recording();
        let figure = Stage::new(&state, &recording, &Changes::default(), None, &|_| None);
        let series = Series::new(&recording);
        let view = TimelineView::fit(recording.step_count());
        let scenes = [
            figure.scene(&StageView::default(), 900.0),
            timeline(&series, &recording, &view, None, Size::new(900.0, 300.0)),
        ];
        let svgs = scenes.map(|scene| scene.to_svg(Theme::Light, "", &timeline_text(&series, &recording)));
        let target = describe_target(TargetId::Class(BreakdownClass::Free), &state, &recording).unwrap();
        format!("{svgs:?} {} {target}", breakdown_text(&state, &recording))
    };
    let known = texts(Program::new(Bytes::mib(100)));
    let unknown = texts(Program::on_unknown_device(Bytes::mib(100)));
    for word in ["capacity", "of 100 MiB", "Of 100 MiB", "%"] {
        assert!(known.contains(word) && !unknown.contains(word), "{word}");
    }
    for word in ["at least 100 MiB: the file does not say more", "a device whose memory is not known"] {
        assert!(!known.contains(word) && unknown.contains(word), "{word}");
    }
}

/// Texts that reach out of the scene or lie over each other.
fn clashes(stage: &Stage, view: &StageView, width_px: f32) -> Vec<String> {
    let scene = stage.scene(view, width_px);
    let texts: Vec<_> = scene
        .marks
        .iter()
        .filter(|mark| matches!(mark, Mark::Text { .. }))
        .map(|mark| (mark, mark.bounds()))
        .collect();
    let mut found = Vec::new();
    for (index, (mark, rect)) in texts.iter().enumerate() {
        let is_inside = rect.x_px >= -0.5
            && rect.y_px >= -0.5
            && rect.right_px() <= scene.width_px + 1.0
            && rect.bottom_px() <= scene.height_px + 0.5;
        if !is_inside {
            found.push(format!("{width_px}: {mark} leaves the scene"));
        }
        for (other, place) in &texts[index + 1..] {
            if rect.grown(-0.75).overlaps(&place.grown(-0.75)) {
                found.push(format!("{width_px}: {mark} lies over {other}"));
            }
        }
    }
    found
}

#[test]
fn no_text_is_cut_or_covered_at_any_width() {
    let recording = story();
    for steps in 0..=recording.step_count() {
        let stage = stage_at(&recording, steps);
        for width in WIDTHS {
            for form in [StageForm::Full, StageForm::Compact, StageForm::Small, StageForm::Projected] {
                let view = StageView { form, ..StageView::default() };
                let found = clashes(&stage, &view, width);
                assert!(found.is_empty(), "step {steps}: {found:#?}");
                let height = stage.scene(&view, width).height_px;
                assert_eq!(height, stage_height(width, stage.has_failures(), form));
                // A stage that fills a height is no higher, and at most twice as high as its own bar and
                // segments let it be.
                for least_height_px in [height - 9.0, height + 41.5, height + 4000.0, f32::NAN] {
                    let view = StageView { least_height_px, ..view };
                    assert!(clashes(&stage, &view, width).is_empty(), "{least_height_px}");
                    let filled = stage.scene(&view, width).height_px;
                    assert!(filled >= height && filled < 2.0 * height, "{filled} of {height}");
                    if least_height_px < height + 42.0 {
                        let short = least_height_px.max(height) - filled;
                        assert!((0.0..2.0).contains(&short), "{least_height_px}: {filled}");
                    }
                }
            }
        }
    }
}

/// How many labels a stage has: texts that are side by side, or one below the other, are one label.
fn label_count(stage: &Stage, view: &StageView, width_px: f32) -> usize {
    let scene = stage.scene(view, width_px);
    let mut labels: Vec<Vec<Rect>> = Vec::new();
    for mark in scene.marks.iter().filter(|mark| matches!(mark, Mark::Text { .. })) {
        let rect = mark.bounds().grown(4.0);
        let (near, apart) =
            labels.into_iter().partition(|label: &Vec<Rect>| label.iter().any(|part| part.overlaps(&rect)));
        labels = apart;
        let near: Vec<Vec<Rect>> = near;
        labels.push(near.into_iter().flatten().chain([rect]).collect());
    }
    labels.len()
}

/// The texts of a stage with leaders at this width.
fn texts_with_leaders(program: Program, form: StageForm, width_px: f32) -> Vec<String> {
    let recording = program.recording();
    let steps = recording.step_count();
    let state = recording.state_at(recording.step(steps - 1).unwrap().end).unwrap();
    let figure = Stage::new(&state, &recording, &Changes::default(), None, &|_| None).with_leaders();
    let view = StageView { form, ..StageView::default() };
    let found = clashes(&figure, &view, width_px);
    assert!(found.is_empty(), "{form:?}: {found:#?}");
    let scene = figure.scene(&view, width_px);
    scene.marks.iter().filter_map(text_of).map(str::to_owned).collect()
}

#[test]
fn a_block_too_narrow_for_its_name_has_it_above() {
    for width in WIDTHS {
        for form in [StageForm::Full, StageForm::Compact, StageForm::Small] {
            let mut program = Program::new(Bytes::mib(400));
            program.alloc("x", Bytes::mib(4)).alloc("y", Bytes::mib(4)).alloc("workspace", Bytes::mib(32));
            let texts = texts_with_leaders(program, form, width).join("; ");
            for name in ["x", "y", "workspace"] {
                assert!(texts.contains(name), "{width} {form:?}: {name} is missing in {texts}");
            }
        }
    }
    // Of a list, the first tensor is named; many names are no names.
    let mut program = Program::new(Bytes::mib(120));
    for number in 0..10 {
        program.alloc(&format!("result[{number}]"), Bytes::mib(2));
        program.alloc(&format!("temporary[{number}]"), Bytes::mib(8));
    }
    let texts = texts_with_leaders(program, StageForm::Compact, 560.0);
    let named: Vec<_> = texts.iter().filter(|text| text.contains('[')).collect();
    assert_eq!(named, ["result[0] 2 MiB", "temporary[0] 8 MiB"]);
    let mut program = Program::new(Bytes::mib(400));
    for number in 0..8 {
        program.alloc(&format!("tensor{number}"), Bytes::mib(1));
    }
    let texts = texts_with_leaders(program, StageForm::Compact, 700.0);
    assert!(!texts.iter().any(|text| text.contains("tensor")), "{texts:?}");
}

#[test]
fn a_block_that_cannot_be_seen_is_enlarged_with_its_bytes() {
    for width in WIDTHS {
        for form in [StageForm::Compact, StageForm::Small] {
            let mut program = Program::new(Bytes::gib(1));
            program.alloc("bias", Bytes::new(1200));
            let texts = texts_with_leaders(program, form, width).join("; ");
            assert!(texts.contains("1,200 bytes"), "{width}: {texts}");
            assert!(texts.contains("336"), "{width}: {texts}");
            assert!(texts.contains("bias, enlarged: 1.5 KiB (1,536 bytes)"), "{width}: {texts}");
        }
    }
}

#[test]
fn a_narrow_area_of_a_small_stage_has_its_name() {
    let mut program = Program::new(Bytes::mib(120));
    program.alloc("a", Bytes::mib(100));
    let texts = texts_with_leaders(program, StageForm::Small, 360.0);
    assert!(texts.contains(&"free".to_owned()) && texts.contains(&"20 MiB".to_owned()), "{texts:?}");
    let mut program = Program::new(Bytes::mib(120));
    program.alloc("a", Bytes::mib(106));
    let texts = texts_with_leaders(program, StageForm::Small, 360.0);
    assert!(texts.contains(&"free".to_owned()), "{texts:?}");
    // A sliver has its words at the end of the area before it.
    let mut program = Program::new(Bytes::mib(1792));
    program.alloc("a", Bytes::mib(1730));
    let texts = texts_with_leaders(program, StageForm::Small, 360.0);
    assert!(texts.contains(&"62 MiB free".to_owned()), "{texts:?}");
}

#[test]
fn a_projected_stage_has_at_most_four_labels_its_peaks_and_the_ends_of_its_ruler() {
    let view = StageView { form: StageForm::Projected, ..StageView::default() };
    let (recording, mut most) = (story(), 0);
    for steps in 0..=recording.step_count() {
        let stage = stage_at(&recording, steps);
        let process = stage.clone().as_process(Bytes::mib(518), Bytes::mib(64), true);
        for (stage, width) in [(&stage, 640.0), (&stage, 1280.0), (&process, 640.0), (&process, 1280.0)] {
            let count = label_count(stage, &view, width);
            most = most.max(count);
            let scene = stage.scene(&view, width);
            let texts: Vec<_> = scene.marks.iter().filter_map(text_of).collect();
            // Both ends of the ruler have a number.
            assert!(count <= 4 + 2, "step {steps}, {width}: {texts:?}");
            assert!(texts.contains(&"0") && texts.contains(&"64 MiB"), "step {steps}, {width}: {texts:?}");
            assert!(texts.contains(&"reserved") && texts.contains(&"allocated"), "step {steps}: {texts:?}");
        }
    }
    assert_eq!(most, 4 + 2);
    // A peak that is over has its number beside that of now.
    let mut program = Program::new(Bytes::mib(64));
    program.alloc("a", Bytes::mib(30));
    program.free("a");
    let texts = texts_with_leaders(program, StageForm::Projected, 1280.0);
    assert!(texts.contains(&"0 B, peak 30 MiB".to_owned()), "{texts:?}");
    // A text that speaks of few tensors has their names; the last change alone has its size.
    let mut program = Program::new(Bytes::mib(64));
    for name in ["a", "b", "c"] {
        program.alloc(name, Bytes::mib(4));
    }
    let texts = texts_with_leaders(program, StageForm::Projected, 1280.0);
    for name in ["a", "b", "c"] {
        assert!(texts.contains(&name.to_owned()), "{texts:?}");
    }
    assert!(texts.iter().filter(|text| **text == "4 MiB").count() <= 1, "{texts:?}");
}

#[test]
fn the_bar_and_the_segments_stand_on_one_ruler() {
    let recording = story();
    let scene = stage_at(&recording, 3).scene(&StageView::default(), 1280.0);
    let rounded: Vec<_> = scene
        .marks
        .iter()
        .filter_map(|mark| match mark {
            Mark::Rounded { rect, .. } => Some(*rect),
            _ => None,
        })
        .collect();
    // 20 of 64 MiB are reserved: 400 of 1280 pixels, in the bar as in the row of segments, whose frames stand
    // a pixel apart.
    let ends: Vec<_> = rounded.iter().filter(|rect| (rect.right_px() - 400.0).abs() <= 1.0).collect();
    assert!(!ends.is_empty(), "{rounded:?}");
    let is_segment = |target: &&Target| matches!(target.what, TargetId::Segment(_));
    let segments: Vec<_> = scene.targets.iter().filter(is_segment).map(|target| target.rect).collect();
    assert!(segments.iter().any(|rect| (rect.right_px() - 399.0).abs() <= 1.0), "{segments:?}");
}

#[test]
fn a_process_has_its_context_before_the_ruler() {
    let recording = story();
    let context = Bytes::mib(518);
    let view = StageView { form: StageForm::Compact, ..StageView::default() };
    for steps in 0..=recording.step_count() {
        let stage = stage_at(&recording, steps).as_process(context, Bytes::mib(64), false);
        let bounds = steps.checked_sub(1).and_then(|step| recording.step(step));
        let memory = recording.state_at(bounds.map_or(0, |step| step.end)).unwrap();
        let shown = context.saturating_add(memory.breakdown().reserved()).to_string();
        for width in WIDTHS {
            let found = clashes(&stage, &view, width);
            assert!(found.is_empty(), "step {steps}: {found:#?}");
            let scene = stage.scene(&view, width);
            assert_eq!(scene.height_px, process_stage_height(width, stage.has_failures(), view.form));
            let texts: Vec<_> = scene.marks.iter().filter_map(text_of).collect();
            for text in ["nvidia-smi", "518 MiB", &shown] {
                assert!(texts.contains(&text), "step {steps}, {width}: {text} is missing in {texts:?}");
            }
        }
    }
}

#[test]
fn what_a_process_has_outside_is_not_free() {
    let recording = story();
    let stage = || stage_at(&recording, recording.step_count());
    let view = StageView { form: StageForm::Compact, ..StageView::default() };
    let said = |stage: Stage| {
        let scene = stage.scene(&view, 1280.0);
        scene.marks.iter().filter_map(text_of).map(str::to_owned).collect::<Vec<_>>()
    };
    let free = |stage: &Stage| said(stage.clone()).join(" ");
    let (of_rest, of_whole) = (
        stage().as_process(Bytes::mib(4), Bytes::ZERO, false),
        stage().as_process_of_whole_device(&[("context".to_owned(), Bytes::mib(4))], Bytes::ZERO),
    );
    let bounds = recording.step(recording.step_count() - 1).unwrap();
    let all = recording.state_at(bounds.end).unwrap().breakdown().free;
    assert!(free(&of_rest).contains(&all.to_string()), "{}", free(&of_rest));
    assert!(free(&of_whole).contains(&all.saturating_sub(Bytes::mib(4)).to_string()), "{}", free(&of_whole));
    let parts = [("context", 518), ("kernels", 92), ("cuBLAS", 66)];
    let parts = parts.map(|(name, mib)| (name.to_owned(), Bytes::mib(mib)));
    for width in WIDTHS {
        let whole = stage().as_process_of_whole_device(&parts, Bytes::mib(64));
        let found = clashes(&whole, &view, width);
        assert!(found.is_empty(), "{width}: {found:#?}");
        // Each part has a block; on a narrow stage all of them share one.
        let scene = whole.scene(&view, width);
        let words: Vec<_> = scene.marks.iter().filter_map(text_of).collect();
        let expected: &[&str] = if width < 560.0 {
            &["CUDA", "676 MiB"]
        } else {
            &["context", "518 MiB", "kernels", "92 MiB", "cuBLAS", "66 MiB"]
        };
        for word in expected {
            assert!(words.iter().any(|found| found.ends_with(word)), "{width}: {word} in {words:?}");
        }
    }
}

fn text_of(mark: &Mark) -> Option<&str> {
    match mark {
        Mark::Text { text, .. } => Some(text),
        _ => None,
    }
}

/// The texts of a scene that have a number.
fn numbers(scene: &Scene) -> BTreeSet<&str> {
    let texts = scene.marks.iter().filter_map(text_of);
    texts.filter(|text| text.contains(|letter: char| letter.is_ascii_digit())).collect()
}

#[test]
fn a_step_under_way_says_only_numbers_that_stay_and_moves_no_block() {
    let recording = story();
    let places = |scene: &Scene| scene.targets.clone();
    let mut count = 0;
    for steps in 0..recording.step_count() {
        for width in WIDTHS {
            let scene = |steps| stage_at(&recording, steps).scene(&StageView::default(), width);
            let (before, after) = (scene(steps), scene(steps + 1));
            for (from, to) in [(&before, &after), (&after, &before)] {
                let halfway = from.halfway_to(to).unwrap();
                assert_eq!(places(&halfway), places(from));
                let (said, ends) = (numbers(&halfway), [numbers(from), numbers(to)]);
                assert!(ends.iter().all(|end| said.is_subset(end)), "{said:?} of {ends:?}");
                count += said.len();
            }
        }
    }
    assert!(count > 400, "{count} numbers were compared");
}

#[test]
fn a_term_lights_up_in_the_bar_and_in_the_segments() {
    let recording = story();
    let stage = stage_at(&recording, 4);
    let plain = stage.scene(&StageView::default(), 1000.0).marks.len();
    for term in Term::ALL {
        let scene = stage.scene(&StageView { lit: Some(term), ..StageView::default() }, 1000.0);
        let is_there = !matches!(term, Term::Pending | Term::Rounding) || scene.marks.len() > plain;
        let some = scene.marks.len() > plain || matches!(term, Term::Pending);
        assert!(is_there || some, "{term:?} lights nothing");
    }
}

#[test]
fn a_story_is_drawn() {
    let recording = story();
    let scene = stage_at(&recording, 6).scene(&StageView::default(), 900.0);
    expect_file!["stage-story.svg"].assert_eq(&scene.to_svg(Theme::Light, "stage", "six steps"));
    let failed = stage_at(&recording, recording.step_count());
    let scene = failed.scene(&StageView::default(), 900.0);
    expect_file!["stage-failed.svg"].assert_eq(&scene.to_svg(Theme::Dark, "stage", "out of memory"));
}

proptest! {
    #[test]
    fn any_run_at_any_width_keeps_its_texts_apart(
        requests in ops(40),
        width in 300.0_f32..4000.0,
    ) {
        let recording = random(&requests).recording();
        let stage = stage_at(&recording, recording.step_count());
        let found = clashes(&stage, &StageView::default(), width);
        prop_assert!(found.is_empty(), "{found:#?}");
    }
}

/// Free memory that the ruler shows only in part ends in two cuts, as the CUDA context does.
#[test]
fn free_memory_that_is_cut_off_says_so() {
    let cuts = |capacity: Bytes| {
        let mut program = Program::new(capacity);
        program.alloc("a", Bytes::mib(30));
        let recording = program.recording();
        let scene = stage_at(&recording, 1).scene(&StageView::default(), 900.0);
        let is_cut = |mark: &&Mark| matches!(mark, Mark::Line { from, to, role: Role::Background, .. } if from.x_px > to.x_px && from.x_px > 850.0);
        scene.marks.iter().filter(is_cut).count()
    };
    assert_eq!((cuts(Bytes::gib(80)), cuts(Bytes::mib(64))), (2, 0));
}
