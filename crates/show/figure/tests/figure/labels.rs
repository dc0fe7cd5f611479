//! Texts of figures over time lie beside the data and not over it.

use blockyard_figure::{
    Mark, Rect, Role, Scene, Series, Size, TimelineView, timeline, timeline_cursor, timeline_plot,
};
use blockyard_record::{Bytes, Marker, Recording};

use crate::program::{Program, story};

/// A run whose peak is near the capacity, as in the workload about the terms.
fn near_the_capacity() -> Recording {
    let mut program = Program::new(Bytes::mib(48));
    program.alloc("a", Bytes::mib(3)).alloc("b", Bytes::mib(5)).alloc("c", Bytes::mib(12));
    program.free("b").alloc("d", Bytes::mib(1)).alloc("e", Bytes::mib(20));
    program.free("e").empty_cache().reset_peak().free("c").free("a");
    program.recording()
}

/// A run that is at its peak all the time.
fn level() -> Recording {
    let mut program = Program::new(Bytes::gib(8));
    program.full_segment(Bytes::gib(1), Bytes::mib(512));
    for _ in 0..200 {
        program.refused("nothing to do");
    }
    program.recording()
}

fn with_time_spans() -> Recording {
    let mut program = Program::new(Bytes::mib(64));
    let span = |start_step: u32, end: u32| Marker {
        start_step,
        end_step: Some(end),
        text: format!("part {start_step}"),
        start_us: 0,
        end_us: None,
    };
    program.markers(vec![span(0, 4), span(1, 3)]);
    for name in ["a", "b", "c", "d", "e"] {
        program.alloc(name, Bytes::mib(4));
    }
    program.recording()
}

/// The edges of areas of data, as pairs of points.
fn edges(scene: &Scene) -> impl Iterator<Item = [blockyard_figure::Point; 2]> + '_ {
    let areas = scene.marks.iter().filter_map(|mark| match mark {
        Mark::Area { points, fill } if fill.role != Role::Failure => Some(points),
        _ => None,
    });
    areas.flat_map(|points| {
        points.windows(2).filter_map(|pair| <[blockyard_figure::Point; 2]>::try_from(pair).ok())
    })
}

/// Whether some data is drawn in the rectangle: an area reaches into it, or the line of a limit or of the
/// capacity does.
fn covers_data(scene: &Scene, rect: &Rect) -> bool {
    let is_over = |one: f32, other: f32| one.min(other) < rect.right_px() && one.max(other) > rect.x_px;
    let has_area = edges(scene).any(|[one, other]| {
        is_over(one.x_px, other.x_px) && one.y_px.min(other.y_px) < rect.bottom_px() - 1.0
    });
    let has_line = scene.marks.iter().any(|mark| match mark {
        Mark::Line { from, to, role: Role::Limit, .. } => {
            is_over(from.x_px, to.x_px) && from.y_px > rect.y_px && from.y_px < rect.bottom_px()
        }
        _ => false,
    });
    has_area || has_line
}

#[test]
fn no_name_of_a_peak_or_a_bound_lies_over_the_data() {
    for recording in [near_the_capacity(), level(), story().recording()] {
        let series = Series::new(&recording);
        let view = TimelineView::fit(recording.step_count());
        let mut named = 0;
        for (width, height) in [(340.0, 180.0), (530.0, 200.0), (900.0, 260.0), (1900.0, 500.0)] {
            let scene = timeline(&series, &recording, &view, None, Size::new(width, height));
            for mark in &scene.marks {
                let Mark::Text { text, .. } = mark else { continue };
                let is_name = ["peak ", "limit ", "capacity "].iter().any(|word| text.starts_with(word));
                let bounds = mark.bounds();
                // The texts of the legend are below the plot.
                if is_name
                    && bounds.bottom_px() < timeline_plot(&series, Size::new(width, height)).bottom_px()
                {
                    named += 1;
                    assert!(!covers_data(&scene, &bounds), "{text} at {width} x {height}");
                }
            }
        }
        assert!(named >= 4, "{named} names");
    }
}

#[test]
fn no_plate_covers_an_area() {
    for recording in [near_the_capacity(), level(), with_time_spans(), story().recording()] {
        let series = Series::new(&recording);
        let view = TimelineView::fit(recording.step_count());
        for size in [Size::new(530.0, 200.0), Size::new(900.0, 260.0)] {
            let scene = timeline(&series, &recording, &view, None, size);
            let plot = timeline_plot(&series, size);
            // The background of the dots of peaks is as small as the rectangles here.
            let plates = scene.marks.iter().filter_map(|mark| match mark {
                Mark::Rect { rect, fill, .. } if fill.role == Role::Background => Some(*rect),
                _ => None,
            });
            for plate in plates.filter(|plate| plate.overlaps(&plot)) {
                let lowest = edges(&scene).flatten().map(|point| point.y_px).fold(0.0, f32::max);
                // The bands of time spans are below zero.
                assert!(plate.y_px >= lowest - 0.5 || !covers_data(&scene, &plate), "{plate:?}");
            }
        }
    }
}

#[test]
fn the_number_of_the_cursor_leaves_the_word_of_the_axis_in_sight() {
    let recording = level();
    let series = Series::new(&recording);
    let size = Size::new(900.0, 260.0);
    let plot = timeline_plot(&series, size);
    for first_step in [0.0, 20.0, 100.0, 150.0] {
        let view = TimelineView { first_step, last_step: first_step + 40.0 };
        let scene = timeline(&series, &recording, &view, None, size);
        let overlay = timeline_cursor(Some(&recording), &scene, &plot, &view, None, first_step as usize);
        let words = |scene: &Scene| -> Vec<(String, Rect)> {
            let text = |mark: &Mark| match mark {
                Mark::Text { text, .. } => Some((text.clone(), mark.bounds())),
                _ => None,
            };
            scene.marks.iter().filter_map(text).collect()
        };
        let axis = words(&scene).into_iter().find(|(text, _)| text == "requests").unwrap().1;
        for (text, bounds) in words(&scene).into_iter().chain(words(&overlay)) {
            assert!(text == "requests" || !bounds.overlaps(&axis.grown(1.0)), "{text} lies over the word");
        }
        let flag = overlay.marks.iter().find_map(|mark| match mark {
            Mark::Rect { rect, fill, .. } if fill.role == Role::Cursor && rect.height_px < 20.0 => {
                Some(*rect)
            }
            _ => None,
        });
        assert!(flag.is_some_and(|flag| !flag.overlaps(&axis)), "{flag:?}");
    }
}
