//! Every text of a figure, from a phone to a 4K screen: none lies over another, none leaves the figure, none
//! is cut within a word.

use std::sync::Arc;

use blockyard_figure::{
    AddressMap, Changes, Collector, ColorBy, Grid, GridKind, GridView, Groups, MapView, Mark, Rect, Role,
    Scene, Series, Size, Stage, StageView, TimelineView, grid_plot, grid_scene, segment_map, timeline,
    timeline_cursor, timeline_plot, timeline_strip,
};
use blockyard_record::{Bytes, Recording};

use crate::apart::assert_texts_are_apart;
use crate::program::{Program, SIDE, story};

const WIDTHS: [f32; 4] = [390.0, 1366.0, 1920.0, 3840.0];

/// Names of several words, many labels, a failure, and a peak in the middle.
fn training() -> Recording {
    let mut program = Program::new(Bytes::gib(4));
    for step in 0..24 {
        let size = Bytes::mib(40 + 9 * (step % 12));
        program
            .label(&format!("step {step}: optimizer.step() and zero_grad(set_to_none)"))
            .alloc(&format!("activations of the layer {step}"), size)
            .alloc_on(&format!("gradient[{step}]"), Bytes::kib(300 * (step + 1)), SIDE);
        if step % 3 == 2 {
            for freed in step - 2..=step {
                program.free(&format!("activations of the layer {freed}"));
            }
        }
    }
    program.label("one tensor too many").alloc("too large for this device", Bytes::gib(16));
    program.recording()
}

/// Thousands of steps, so that pixels hold several of them.
fn long() -> Recording {
    let mut program = Program::new(Bytes::gib(80));
    program.label("load the weights").alloc("weights", Bytes::mib(700));
    for step in 0..3000 {
        if step % 500 == 0 {
            program.label(&format!("after iteration {}", step / 500));
        }
        program.alloc("temporary", Bytes::mib(20 + (step * 37) % 400)).free("temporary");
    }
    program.recording()
}

fn recordings() -> Vec<(&'static str, Recording)> {
    let empty = Program::new(Bytes::gib(1)).recording();
    vec![("story", story().recording()), ("training", training()), ("long", long()), ("empty", empty)]
}

/// The texts that a figure may name: a text that ends with `…` is the beginning of one of these, up to the
/// end of a word.
fn assert_no_word_is_cut(scene: &Scene, recording: &Recording) {
    let labels = recording.labels().iter().map(|label| label.text.clone());
    let names = (0..10_000).filter_map(|id| recording.name(blockyard_record::AllocationId::new(id)));
    let known: Vec<String> = labels.chain(names.map(str::to_owned)).collect();
    for mark in &scene.marks {
        let Mark::Text { text, clip, .. } = mark else { continue };
        if let Some(clip) = clip {
            assert!(mark.bounds().right_px() <= clip.right_px() + 0.5, "{text} is cut by {clip:?}");
        }
        let Some(begun) = text.strip_suffix('…') else { continue };
        let begun = begun.strip_prefix("… ").unwrap_or(begun);
        let goes_on = |whole: &String| {
            let rest = whole.strip_prefix(begun)?;
            Some((begun.chars().last()?, rest.chars().next()?))
        };
        let found = known.iter().find_map(goes_on);
        let (last, next) = found.unwrap_or_else(|| panic!("{text:?} is no beginning of a name"));
        assert!(!(last.is_alphanumeric() && next.is_alphanumeric()), "{text:?} is cut within a word");
    }
}

fn assert_readable(what: &str, scene: &Scene, recording: &Recording) {
    eprintln!("{what}");
    assert_texts_are_apart(scene);
    assert_no_word_is_cut(scene, recording);
}

#[test]
fn texts_of_memory_over_time_are_whole_and_apart_from_a_phone_to_a_large_screen() {
    for (name, recording) in recordings() {
        let series = Series::new(&recording);
        let steps = recording.step_count();
        for width in WIDTHS {
            for height in [150.0, 320.0, 900.0] {
                let size = Size::new(width, height);
                for zoom in [1.0, 7.0] {
                    let view = TimelineView::fit(steps).zoom_at(0.6, zoom, steps);
                    let base = timeline(&series, &recording, &view, None, size);
                    let plot = timeline_plot(&series, size);
                    assert_readable(&format!("{name} {width}x{height} zoom {zoom}"), &base, &recording);
                    for step in (0..=steps).step_by(steps / 40 + 1) {
                        let over = timeline_cursor(Some(&recording), &base, &plot, &view, None, step);
                        assert_cursor_covers_no_text(&base, &over, &plot);
                    }
                }
                let strip = timeline_strip(
                    &series,
                    &recording,
                    &TimelineView::fit(series.step_count()),
                    Size::new(width, 60.0),
                );
                assert_readable(&format!("{name}, strip of {width}"), &strip, &recording);
            }
        }
    }
}

/// Checks that neither the line nor the values of the cursor lie on a text within the plot, or on the names
/// above it.
fn assert_cursor_covers_no_text(base: &Scene, over: &Scene, plot: &Rect) {
    assert_texts_are_apart(over);
    let texts: Vec<Rect> =
        base.marks.iter().filter(|mark| matches!(mark, Mark::Text { .. })).map(Mark::bounds).collect();
    for mark in &over.marks {
        // The flag on the axis, which covers whole ticks, and the column of a moment, which is nearly clear.
        let bounds = mark.bounds();
        if bounds.y_px >= plot.bottom_px()
            || bounds.height_px >= plot.height_px && matches!(mark, Mark::Rect { .. })
        {
            continue;
        }
        let inside: Vec<&Rect> = texts.iter().filter(|text| text.bottom_px() < plot.bottom_px()).collect();
        let covered = inside.iter().find(|text| text.overlaps(&bounds));
        assert!(covered.is_none(), "{mark} lies on a text at {covered:?}");
    }
}

#[test]
fn texts_of_segments_and_allocations_are_whole_and_apart_from_a_phone_to_a_large_screen() {
    for (name, recording) in recordings() {
        let recording = Arc::new(recording);
        let steps = recording.step_count();
        let allocations = Collector::collect(recording.clone());
        let map = AddressMap::new(&allocations);
        for width in WIDTHS {
            for step in (0..=steps).step_by(steps / 20 + 1) {
                let what = format!("{name} {width}, step {step}");
                let last = step.checked_sub(1).and_then(|step| recording.step(step));
                let (start, end) = last.map_or((0, 0), |last| (last.start, last.end));
                let state = recording.state_at(end).unwrap();
                let changes = Changes::of(&recording, start, end);
                let drawn = Stage::new(&state, &recording, &changes, step.checked_sub(1), &|_| None);
                let scene = drawn.scene(&StageView::default(), width);
                assert_readable(&format!("{what}, stage"), &scene, &recording);
                let scene =
                    segment_map(&state, &changes, &recording, &MapView::default(), Size::new(width, 600.0));
                assert_readable(&format!("{what}, map"), &scene, &recording);
            }
            let size = Size::new(width, 400.0);
            for kind in [GridKind::Address, GridKind::Stacked] {
                let steps = TimelineView::fit(steps);
                let high = match kind {
                    GridKind::Address => map.total(),
                    GridKind::Stacked => allocations.most_active(&steps),
                };
                let view = GridView { steps, low: 0.0, high: high.get().max(1) as f64 };
                let groups = Groups::new(&allocations, &recording, ColorBy::Size, None);
                let plot = grid_plot(size);
                let (columns, rows) = (plot.width_px as usize, plot.height_px as usize);
                let grid = Grid::new(&allocations, kind, view, columns, rows).by_groups(&groups);
                let grid = grid.drawn(&allocations, &map);
                let mut scene = grid_scene(kind, &view, None, &map, size);
                let names = grid.names(&groups, plot, &Scene::new(0.0, 0.0));
                let is_inside = |mark: &Mark| {
                    let rect = mark.bounds();
                    rect.x_px >= plot.x_px - 1.0 && rect.right_px() <= plot.right_px() + 1.0
                };
                assert!(names.marks.iter().all(is_inside));
                let name_of = |row: usize| recording.name(allocations.id(row)?);
                let own = grid.row_names(allocations.len(), name_of, plot);
                assert!(own.marks.iter().all(is_inside));
                if name == "story" && width > 1000.0 {
                    let is_name = |mark: &Mark| matches!(mark, Mark::Text { text, .. } if text == "weights");
                    assert!(own.marks.iter().any(is_name), "no tensor has its name at {width}");
                }
                if name == "training" && width > 1000.0 {
                    assert!(!names.marks.is_empty(), "no area has its name at {width}");
                }
                // Names of allocations and of groups are apart from each other, too.
                let mut both = scene.clone();
                both.marks.extend(own.marks.iter().cloned());
                both.marks.extend(grid.names(&groups, plot, &own).marks);
                assert_texts_are_apart(&both);
                scene.marks.extend(names.marks);
                assert_readable(&format!("{name} {width}, {kind:?}"), &scene, &recording);
            }
        }
    }
}

#[test]
fn a_stack_has_its_groups_on_top_of_each_other() {
    let recording = Arc::new(training());
    let allocations = Collector::collect(recording.clone());
    let map = AddressMap::new(&allocations);
    let steps = TimelineView::fit(recording.step_count());
    let high = allocations.most_active(&steps).get() as f64;
    let view = GridView { steps, low: 0.0, high };
    let groups = Groups::new(&allocations, &recording, ColorBy::Size, None);
    let grid = Grid::new(&allocations, GridKind::Stacked, view, 200, 150).by_groups(&groups);
    let grid = grid.drawn(&allocations, &map);
    let mut with_several = 0;
    for column in 0..200 {
        let places = (0..150).filter_map(|row| match grid.cell(column, row) {
            blockyard_figure::Cell::Row(found) => Some(groups.place(found)),
            _ => None,
        });
        let mut places: Vec<usize> = places.collect();
        assert!(places.is_sorted(), "column {column}: {places:?}");
        places.dedup();
        with_several += usize::from(places.len() > 1);
    }
    assert!(with_several > 50, "{with_several} columns have several groups");
}

#[test]
fn a_legend_has_what_is_present_and_sizes_are_steps_of_one_hue() {
    for (name, recording) in recordings() {
        let recording = Arc::new(recording);
        let allocations = Collector::collect(recording.clone());
        for by in ColorBy::ALL {
            let groups = Groups::new(&allocations, &recording, by, None);
            assert!(groups.legend().iter().all(|entry| entry.count > 0), "{name}: {:?}", groups.legend());
            let count: usize = groups.legend().iter().map(|entry| entry.count).sum();
            assert_eq!(count, allocations.len(), "{name} by {}", by.name());
            if matches!(by, ColorBy::Size | ColorBy::Age) {
                let roles: Vec<Role> = groups.legend().iter().map(|entry| entry.role).collect();
                assert!(
                    roles.is_sorted() && roles.iter().all(|role| matches!(role, Role::Step(_))),
                    "{roles:?}"
                );
            }
        }
        let names = Groups::new(&allocations, &recording, ColorBy::Name, None);
        for row in 0..allocations.len() {
            let Some(name) = allocations.id(row).and_then(|id| recording.name(id)) else { continue };
            let text = &names.legend()[names.place(row)].text;
            assert!(name.starts_with(text.as_str()) || text.ends_with("others"), "{name}: {text}");
        }
    }
}

#[test]
fn a_strip_says_its_highest_bytes_and_names_its_areas_whole_and_apart() {
    for (name, recording) in recordings() {
        let series = Series::new(&recording);
        for width in [300.0, 390.0, 900.0, 1900.0] {
            let scene = timeline_strip(
                &series,
                &recording,
                &TimelineView::fit(series.step_count()),
                Size::new(width, 110.0),
            );
            assert_readable(&format!("{name} {width}"), &scene, &recording);
            let highest = series.peak_bytes(&recording).1.to_string();
            let is_said = |mark: &Mark| matches!(mark, Mark::Text { text, .. } if *text == highest);
            let is_empty = series.peak_bytes(&recording).1.is_zero();
            assert!(is_empty || scene.marks.iter().any(is_said), "{name} {width}: no {highest}");
        }
        let low = timeline_strip(
            &series,
            &recording,
            &TimelineView::fit(series.step_count()),
            Size::new(900.0, 40.0),
        );
        let is_area = |mark: &Mark| matches!(mark, Mark::Text { text, .. } if text == "allocated");
        assert!(!low.marks.iter().any(is_area), "{name}: no room for names");
    }
}
