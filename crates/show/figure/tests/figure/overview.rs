use blockyard_figure::{
    Changes, MapAnchor, MapOverview, MapView, Mark, ReleasedSegment, Role, Size, segment_map_height,
};
use blockyard_record::{Bytes, MemoryState, Recording};

use crate::program::Program;

const SIZE: Size = Size::new(900.0, 200.0);

/// Thirty segments, the first and the last of them large.
fn many() -> Recording {
    let mut program = Program::new(Bytes::gib(4));
    program.full_segment(Bytes::gib(1), Bytes::mib(512));
    for _ in 0..28 {
        program.full_segment(Bytes::mib(2), Bytes::mib(1));
    }
    program.full_segment(Bytes::gib(1), Bytes::mib(512));
    program.recording()
}

fn last_state(recording: &Recording) -> MemoryState {
    recording.state_at(recording.event_count()).unwrap()
}

fn overview(state: &MemoryState, view: &MapView) -> MapOverview {
    MapOverview::new(state, &Changes::default(), view, state.breakdown().reserved(), SIZE)
}

#[test]
fn each_segment_of_the_strip_is_as_wide_as_its_bytes() {
    let recording = many();
    let state = last_state(&recording);
    let strip = overview(&state, &MapView::default());
    let scene = strip.scene(&state, &Changes::default(), None);
    let filled: f32 = scene
        .marks
        .iter()
        .filter_map(|mark| match mark {
            Mark::Rect { rect, fill, .. } if fill.role == Role::Requested => Some(rect.width_px),
            _ => None,
        })
        .sum();
    // All blocks are allocated: the strip is full, from the bars' left edge (178) to their right edge (894).
    assert!((filled - 716.0).abs() < 1.0, "{filled}");
    // The first of two segments of 1 GiB beside 56 MiB: less than half of the strip, a thirtieth of the rows.
    let (left, right) = strip.lens_px(0.0);
    assert!((left - 178.0).abs() < 1.0, "{left}");
    assert!((right - left) > 340.0 && right < 178.0 + 716.0 / 2.0 + 10.0, "{right}");
}

#[test]
fn the_strip_and_the_rows_lead_to_each_other() {
    let recording = many();
    let state = last_state(&recording);
    let view = MapView::default();
    let strip = overview(&state, &view);
    let most = segment_map_height(&state, &Changes::default(), &view) - SIZE.height_px;
    assert_eq!(strip.scroll_px_at(0.0).to_bits(), 0.0_f32.to_bits());
    assert!((strip.scroll_px_at(894.0) - most).abs() < 1.0);
    for x_px in [200.0, 500.0, 530.0, 540.0, 700.0] {
        let (left, right) = strip.lens_px(strip.scroll_px_at(x_px));
        assert!(left - 1.0 <= x_px && x_px <= right + 1.0, "{x_px} beside {left} to {right}");
    }
}

#[test]
fn the_strip_says_which_segments_are_in_sight() {
    let recording = many();
    let state = last_state(&recording);
    let strip = overview(&state, &MapView::default());
    assert_eq!(strip.text(0.0), "segments 1 to 7 of 30, 1.01 GiB of 2.05 GiB reserved");
    assert_eq!(
        overview(&Program::new(Bytes::gib(1)).recording().state_at(0).unwrap(), &MapView::default())
            .text(0.0),
        "no segments"
    );
}

#[test]
fn an_empty_map_and_a_window_without_size_have_a_strip_too() {
    let recording = many();
    let state = last_state(&recording);
    for size in [Size::new(0.0, 0.0), Size::new(f32::NAN, f32::INFINITY), Size::new(1.0, 1.0)] {
        let strip = MapOverview::new(&state, &Changes::default(), &MapView::default(), Bytes::ZERO, size);
        let scene = strip.scene(&state, &Changes::default(), None);
        assert!(scene.width_px.is_finite());
        assert!(strip.scroll_px_at(f32::NAN).is_finite());
        assert!(strip.lens_px(10.0).0.is_finite());
    }
}

#[test]
fn rows_in_sight_stay_where_they_are_when_rows_above_them_go() {
    let recording = many();
    let state = last_state(&recording);
    let view = MapView { scroll_px: 300.0, ..MapView::default() };
    let none = Changes::default();
    let anchor = MapAnchor::of(&state, &none, &view, SIZE);
    assert!((anchor.scroll_px(&state, &none, &view, SIZE) - 300.0).abs() < 0.5, "nothing changed");
    // The row of a released segment stands above all others, which are one row lower.
    let first = state.segments().next().unwrap();
    let released = ReleasedSegment {
        segment: first.id,
        addr: first.addr,
        size: first.size,
        stream: first.stream,
        pool_id: first.pool_id,
        pool: first.pool,
    };
    let released = Changes { released: vec![released], ..Changes::default() };
    let moved = anchor.scroll_px(&state, &released, &view, SIZE);
    assert!((moved - 326.0).abs() < 0.5, "{moved}");
    let top = MapAnchor::of(&state, &none, &MapView::default(), SIZE);
    assert!(top.scroll_px(&state, &none, &MapView::default(), SIZE).abs() < 0.5, "the top stays the top");
}
