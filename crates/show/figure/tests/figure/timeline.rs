use blockyard_figure::{
    Anchor, Clock, Dash, GridCursor, GridView, Mark, Point, ReadRun, Rect, Role, Scene, Series, Size,
    TargetId, Theme, TimelineView, describe_target, grid_bounds, grid_cursor, read_timeline, timeline,
    timeline_cursor, timeline_plot, timeline_step_at,
};
use blockyard_record::{Bytes, Marker, Recording};
use expect_test::expect_file;
use proptest::prelude::*;

use crate::apart::assert_texts_are_apart;
use crate::program::{Program, ops, random, story};

const SIZE: Size = Size::new(900.0, 260.0);

fn plot_of(recording: &Recording, size: Size) -> Rect {
    timeline_plot(&Series::new(recording), size)
}

fn whole(recording: &Recording) -> Scene {
    let series = Series::new(recording);
    timeline(&series, recording, &TimelineView::fit(recording.step_count()), None, SIZE)
}

/// The line of allocated bytes.
fn allocated_line(scene: &Scene) -> Vec<Point> {
    let line = scene.marks.iter().find_map(|mark| match mark {
        Mark::Path { points, role: Role::PeakAllocated, dash: Dash::Solid, .. } => Some(points.clone()),
        _ => None,
    });
    line.unwrap_or_default()
}

/// A reader sees a run up to an open question: neither a curve nor a text is about what follows.
#[test]
fn a_run_is_read_up_to_an_open_question() {
    let recording = quiet_but_for(40, 30);
    let series = Series::new(&recording);
    let texts = |scene: &Scene| {
        let text = |mark: &Mark| match mark {
            Mark::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        scene.marks.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    };
    let seen = |last| {
        let read = ReadRun { last, ..ReadRun::default() };
        read_timeline(&series, &recording, &read, 20, SIZE)
    };
    let (part, whole) = (seen(Some(20)), seen(None));
    assert!(texts(&whole).contains("peak allocated 704 MiB"), "{}", texts(&whole));
    assert!(texts(&part).contains("peak allocated 64 MiB"), "{}", texts(&part));
    let right = |scene: &Scene| allocated_line(scene).last().map(|point| point.x_px).unwrap_or_default();
    assert!(right(&part) < right(&whole) * 0.6, "{} of {}", right(&part), right(&whole));
}

/// An earlier run that was longer has its line up to its end, and the axis has the word of a reader.
#[test]
fn a_run_is_read_beside_the_run_before_it() {
    let recording = quiet_but_for(40, 30);
    let series = Series::new(&recording);
    let before = vec![Bytes::mib(32); 60];
    let alone = read_timeline(&series, &recording, &ReadRun::default(), 40, SIZE);
    let beside = read_timeline(&series, &recording, &ReadRun { before, ..ReadRun::default() }, 40, SIZE);
    let right = |scene: &Scene| allocated_line(scene).last().map(|point| point.x_px).unwrap_or_default();
    assert!(right(&beside) < right(&alone) * 0.8, "{} of {}", right(&beside), right(&alone));
    let dashed = beside.marks.iter().find_map(|mark| match mark {
        Mark::Path { points, role: Role::Text, dash: Dash::Dashed, .. } => points.last(),
        _ => None,
    });
    assert!((dashed.unwrap().x_px - right(&alone)).abs() < 1.0, "{dashed:?}");
    let is_word =
        |word: &'static str| move |mark: &Mark| matches!(mark, Mark::Text { text, .. } if text == word);
    assert!(["before", "steps"].into_iter().all(|word| beside.marks.iter().any(is_word(word))));
    assert!(!beside.marks.iter().any(is_word("requests")));
}

/// The groups of the allocated bytes lie on top of each other, up to the line of the allocated bytes.
#[test]
fn groups_add_up_to_the_allocated_bytes() {
    let recording = quiet_but_for(40, 30);
    let series = Series::new(&recording);
    let bytes = |of: fn(Bytes) -> Bytes| {
        let after = recording.breakdowns_from(0).map(|breakdown| of(breakdown.allocated()));
        std::iter::once(Bytes::ZERO).chain(after).collect::<Vec<_>>()
    };
    let base = bytes(|allocated| allocated.min(Bytes::mib(64)));
    let rest = bytes(|allocated| allocated.saturating_sub(Bytes::mib(64)));
    let groups = vec![(Role::CATEGORIES[0], base), (Role::CATEGORIES[3], rest)];
    let read = ReadRun { groups, ..ReadRun::default() };
    let scene = read_timeline(&series, &recording, &read, 40, SIZE);
    let top = |points: &[Point]| points.iter().map(|point| point.y_px).fold(f32::MAX, f32::min);
    let highest = |role: Role| {
        let area = scene.marks.iter().find_map(|mark| match mark {
            Mark::Area { points, fill } if fill.role == role => Some(top(points)),
            _ => None,
        });
        area.unwrap_or_default()
    };
    assert!(highest(Role::CATEGORIES[0]) > highest(Role::CATEGORIES[3]));
    assert!((highest(Role::CATEGORIES[3]) - top(&allocated_line(&scene))).abs() < 0.5);
}

/// Many steps that change nothing, and a single step that is a spike.
fn quiet_but_for(steps: usize, spike: usize) -> Recording {
    let mut program = Program::new(Bytes::gib(80));
    program.alloc("base", Bytes::mib(64));
    for step in 1..steps {
        if step == spike {
            program.alloc("spike", Bytes::mib(640));
        } else if step == spike + 1 {
            program.free("spike");
        } else if step == spike + 2 {
            program.empty_cache();
        } else {
            program.refused("nothing to do");
        }
    }
    program.recording()
}

#[test]
fn the_number_of_the_cursor_leaves_no_part_of_a_tick_in_sight() {
    let recording = story().recording();
    let view = TimelineView::fit(recording.step_count());
    let base = whole(&recording);
    let mut covered = 0;
    for step in 0..=recording.step_count() {
        let overlay = timeline_cursor(Some(&recording), &base, &plot_of(&recording, SIZE), &view, None, step);
        let flag = rects(&overlay, Role::Cursor).last().copied().unwrap();
        let plates = rects(&overlay, Role::Background);
        for mark in &base.marks {
            let Mark::Text { at, text, anchor: Anchor::Middle, .. } = mark else { continue };
            // A digit is six pixels wide.
            let half = 3.0 * text.chars().count() as f32;
            let (left, right) = (at.x_px - half, at.x_px + half);
            if at.y_px < flag.y_px || right < flag.x_px || left > flag.right_px() {
                continue;
            }
            covered += 1;
            let hides = |plate: &Rect| plate.x_px <= left && plate.right_px() >= right;
            assert!(plates.iter().any(hides), "step {step}: {text}");
        }
    }
    assert!(covered > 2);
}

/// The rectangles of a role.
fn rects(scene: &Scene, role: Role) -> Vec<Rect> {
    let of = |mark: &Mark| match mark {
        Mark::Rect { rect, fill, .. } if fill.role == role => Some(*rect),
        _ => None,
    };
    scene.marks.iter().filter_map(of).collect()
}

#[test]
fn a_story_as_a_timeline() {
    let recording = story().recording();
    let mut scene = whole(&recording);
    let view = TimelineView::fit(recording.step_count());
    let plot = plot_of(&recording, SIZE);
    scene.marks.extend(timeline_cursor(Some(&recording), &whole(&recording), &plot, &view, None, 8).marks);
    assert_texts_are_apart(&whole(&recording));
    let svg = scene.to_svg(Theme::Light, "Memory over time", "A timeline.");
    expect_file!["./timeline-story.svg"].assert_eq(&svg);
}

#[test]
fn failures_and_labels_can_be_reached() {
    let mut program = Program::new(Bytes::mib(64));
    program
        .label("load")
        .alloc("a", Bytes::mib(30))
        .label("more")
        .alloc("b", Bytes::gib(1))
        .alloc("c", Bytes::mib(1));
    let scene = whole(&program.recording());
    let targets: Vec<_> = scene.targets.iter().map(|target| target.what).collect();
    assert_eq!(
        targets,
        [
            TargetId::Label(0),
            TargetId::Label(1),
            TargetId::FailedStep(1),
            // The request stands on the reserved bytes, and the text is beside the mark.
            TargetId::FailedStep(1),
            TargetId::FailedStep(1),
            TargetId::PeakAllocated,
            TargetId::PeakReserved,
        ]
    );
}

#[test]
fn thousands_of_labels_cost_no_more_than_their_pixels() {
    let mut program = Program::new(Bytes::mib(64));
    for step in 0..5000 {
        program.label(&format!("step {step}")).refused("nothing to do");
    }
    let scene = whole(&program.recording());
    assert_texts_are_apart(&scene);
    assert!(scene.marks.len() < 1500, "{} marks", scene.marks.len());
}

#[test]
fn an_empty_recording_and_broken_sizes_are_drawn() {
    let recording = Program::new(Bytes::gib(1)).recording();
    assert_texts_are_apart(&whole(&recording));
    let series = Series::new(&recording);
    for size in [Size::new(f32::NAN, -1.0), Size::new(1.0, 1.0), Size::new(60.0, 30.0)] {
        let view = TimelineView { first_step: f64::NAN, last_step: f64::INFINITY };
        let scene = timeline(&series, &recording, &view, None, size);
        assert!(scene.marks.len() < 1000);
        let _ = (
            timeline_cursor(Some(&recording), &scene, &plot_of(&recording, size), &view, None, 3),
            timeline_step_at(&view, None, size, f32::NAN),
        );
    }
}

#[test]
fn times_stand_beside_the_steps_and_named_time_spans_are_bands() {
    let mut program = Program::new(Bytes::gib(1));
    for (step, name) in ["a", "b", "c", "d", "e", "f", "g", "h"].into_iter().enumerate() {
        program.time_us(1_000_000 + step as u64 * 250_000).alloc(name, Bytes::mib(20));
    }
    let marker = |text: &str, from: u32, to: u32| Marker {
        text: text.to_owned(),
        start_step: from,
        end_step: Some(to),
        start_us: 1_000_000 + u64::from(from) * 250_000,
        end_us: Some(1_000_000 + u64::from(to) * 250_000),
    };
    program.markers(vec![marker("step 0", 1, 6), marker("forward", 2, 5), marker("step 1", 6, 8)]);
    let recording = program.recording();
    let scene = whole(&recording);
    let text = scene.to_string();
    // A row for the requests and a row for the times below, each with its name.
    for word in ["\"requests\"", "\"4\"", "\"7\"", "\"time\"", "\"750.0 ms\"", "\"1.50 s\""] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains('·'), "{text}");
    let bands: Vec<_> = scene.targets.iter().filter(|it| matches!(it.what, TargetId::Marker(_))).collect();
    assert_eq!(bands.len(), 3, "{text}");
    assert!(bands[1].rect.bottom_px() <= bands[0].rect.y_px + 1.0, "one within another is drawn above it");
    let state = recording.state_at(0).unwrap();
    assert_eq!(
        describe_target(TargetId::Marker(1), &state, &recording).as_deref(),
        Some("forward: requests 3 to 5, 750.0 ms")
    );
    // Without times there is the axis of requests alone.
    assert!(!whole(&quiet_but_for(8, 3)).to_string().contains("\"time\""));
}

proptest! {
    // Recordings are long, so a few cases are enough.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_spike_of_one_step_is_never_lost(
        steps in 4_usize..40_000,
        at in 0.0_f64..1.0,
        zoom in prop_oneof![Just(1.0), 1.0_f64..5000.0],
    ) {
        let spike = (at * (steps - 3) as f64) as usize + 1;
        let recording = quiet_but_for(steps, spike);
        let series = Series::new(&recording);
        let focus = (spike as f64 + 1.5) / (steps as f64 + 1.0);
        let view = TimelineView::fit(recording.step_count()).zoom_at(focus, zoom, recording.step_count());
        let scene = timeline(&series, &recording, &view, None, SIZE);
        let line = allocated_line(&scene);
        let top = line.iter().map(|point| point.y_px).fold(f32::MAX, f32::min);
        let plot = timeline_plot(&series, SIZE);
        let share = (plot.bottom_px() - top) / plot.height_px;
        // The spike sets the range, with a margin above it.
        prop_assert!((0.85..=1.0).contains(&share), "the line rises to {share} of the height");
        let span = view.span();
        let x = plot.x_px + ((spike as f64 + 1.0 - view.first_step) / span) as f32 * plot.width_px;
        let x = x.max(plot.x_px);
        let found = line.iter().any(|point| point.y_px == top && (point.x_px - x).abs() <= 1.5);
        prop_assert!(found, "no spike near {x}: {:?}", line);
    }
}

proptest! {
    #[test]
    fn curves_stay_in_the_plot_and_texts_apart(
        ops in ops(120),
        zoom in (0.0_f64..1.0, 1.0_f64..50.0),
        width in 330_u16..1400,
    ) {
        let recording = random(&ops).recording();
        let steps = recording.step_count();
        let series = Series::new(&recording);
        let size = Size::new(f32::from(width), 240.0);
        let view = TimelineView::fit(steps).zoom_at(zoom.0, zoom.1, steps);
        let scene = timeline(&series, &recording, &view, None, size);
        assert_texts_are_apart(&scene);
        let plot = timeline_plot(&series, size).grown(2.5);
        for mark in &scene.marks {
            if let Mark::Path { points, .. } = mark {
                prop_assert!(points.iter().all(|point| plot.contains(point.x_px, point.y_px)), "{}", mark);
            }
        }
    }

    #[test]
    fn a_click_and_the_cursor_agree(steps in 0_usize..2000, at in 0.0_f64..1.0, zoom in 1.0_f64..100.0) {
        let step = (at * steps as f64) as usize;
        let view = TimelineView::fit(steps).zoom_at(at, zoom, steps).reveal(step, steps);
        let base = Scene::new(SIZE.width_px, SIZE.height_px);
        let plot = plot_of(&Program::new(Bytes::gib(1)).recording(), SIZE);
        let scene = timeline_cursor(None, &base, &plot, &view, None, step);
        let line = scene.marks.iter().find_map(|mark| match mark {
            Mark::Line { from, role: Role::Cursor, .. } => Some(*from),
            _ => None,
        });
        // The line is at the right edge of its step's column, and all steps to the left of the line have
        // happened.
        let found = timeline_step_at(&view, None, SIZE, line.expect("the cursor is in sight").x_px - 1.0);
        let step_px = f64::from(plot.width_px) / view.span();
        let off = (found as f64 - step as f64).abs();
        prop_assert!(off <= (1.5 / step_px).ceil(), "{found} for {step} at {step_px} px a step");
    }
}

#[test]
fn a_clock_draws_steps_where_they_happened() {
    let mut recorder = blockyard_record::Recorder::new(blockyard_record::RunInfo::default());
    for time in [1000, 1010, 1020, 2000] {
        recorder.set_time_us(time);
        recorder.finish_step(blockyard_record::StepOutcome::Done);
    }
    let recording = recorder.finish().expect("a short recording");
    let clock = Clock::new(&recording).expect("times are known");
    let view = TimelineView::fit(recording.step_count());
    let plot = plot_of(&recording, SIZE);
    let at =
        |x_fraction: f32| timeline_step_at(&view, Some(&clock), SIZE, plot.x_px + x_fraction * plot.width_px);
    // Three steps in the first fiftieth, then the pause.
    assert_eq!([at(0.0), at(0.015), at(0.5), at(0.99)], [1, 2, 3, 3]);
    let series = Series::new(&recording);
    let scene = timeline(&series, &recording, &view, Some(&clock), SIZE);
    let texts = scene.marks.iter().filter_map(|mark| match mark {
        blockyard_figure::Mark::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert!(texts.clone().any(|text| text == "400 µs"), "{:?}", texts.collect::<Vec<_>>());
}

#[test]
fn two_ticks_of_the_time_never_have_one_text() {
    let mut program = Program::new(Bytes::gib(1));
    for step in 0..400_u64 {
        // A pause, and then requests that follow each other closely.
        program.time_us(if step == 0 { 0 } else { 1_200_000 + step * 7 }).refused("nothing to do");
    }
    let scene = whole(&program.recording());
    let times: Vec<&str> = scene
        .marks
        .iter()
        .filter_map(|mark| match mark {
            Mark::Text { text, .. } if text.ends_with(" s") => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let different: std::collections::BTreeSet<_> = times.iter().collect();
    assert!(times.len() > 3 && different.len() == times.len(), "{times:?}");
}

#[test]
fn the_legend_names_what_is_there() {
    let named = |recording: &Recording, name: &str| {
        let is_named = |mark: &Mark| matches!(mark, Mark::Text { text, .. } if text == name);
        whole(recording).marks.iter().any(is_named)
    };
    let mut exact = Program::new(Bytes::gib(1));
    exact.alloc("a", Bytes::mib(4)).alloc("b", Bytes::mib(20)).free("a");
    let exact = exact.recording();
    assert!(named(&exact, "requested") && named(&exact, "cached"));
    assert!(!named(&exact, "rounding") && !named(&exact, "pending"));
    let mut rounded = Program::new(Bytes::gib(1));
    rounded.alloc("a", Bytes::new(3_000_001));
    assert!(named(&rounded.recording(), "rounding"));
}

/// Over stacked allocations the peaks have their names and their dots, of which that of the reserved bytes is
/// hollow, and the line of the cursor leaves both in sight. A part of the bytes without a peak has no name of it.
#[test]
fn the_outlines_of_stacked_allocations_tell_the_peaks_apart() {
    let recording = story().recording();
    let series = Series::new(&recording);
    let steps = TimelineView::fit(recording.step_count());
    let bounds = |low: f64, high: f64| {
        grid_bounds(&series, &recording, &GridView { steps, low, high }, None, Size::new(900.0, 420.0))
    };
    let mib = |count: u32| f64::from(count << 20);
    let scene = bounds(0.0, mib(120));
    let has_text = |scene: &Scene, text: &str| {
        scene
            .marks
            .iter()
            .any(|mark| matches!(mark, Mark::Text { text: found, .. } if found.starts_with(text)))
    };
    assert!(has_text(&scene, "peak allocated 75.59 MiB") && has_text(&scene, "peak reserved 94 MiB"));
    let dots = |role: Role| {
        let is_dot = |mark: &&Mark| matches!(mark, Mark::Rounded { fill, .. } if fill.role == role);
        scene.marks.iter().filter(is_dot).map(Mark::bounds).collect::<Vec<_>>()
    };
    let (allocated, reserved, ground) =
        (dots(Role::PeakAllocated), dots(Role::PeakReserved), dots(Role::Background));
    assert_eq!((allocated.len(), reserved.len(), ground.len()), (1, 1, 3));
    for (at, _) in [(13, allocated), (14, reserved)] {
        let cursor = GridCursor { moment: at, ..GridCursor::default() };
        let over = grid_cursor(&recording, &scene, &steps, None, &cursor);
        let lines = over.marks.iter().filter(|mark| matches!(mark, Mark::Line { role: Role::Cursor, .. }));
        assert!(lines.map(Mark::bounds).all(|line| ground.iter().all(|dot| !dot.overlaps(&line))), "{at}");
    }
    let part = bounds(mib(10), mib(60));
    assert!(!has_text(&part, "peak"));
    assert!(has_text(&bounds(mib(90), mib(100)), "peak reserved"));
}
