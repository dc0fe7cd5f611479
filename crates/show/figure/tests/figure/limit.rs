//! The limit of the process: the limit that a memory fraction sets, and the limit that a failed request
//! shows.

use blockyard_figure::{
    Changes, Mark, Pattern, Rect, Role, Scene, Series, Size, Stage, StageView, TargetId, TimelineView,
    describe_target, timeline,
};
use blockyard_record::{Bytes, Event, OomLimit, Recording, StepOutcome, StreamId};

use crate::apart::assert_texts_are_apart;
use crate::program::Program;

fn over_time(recording: &Recording, size: Size) -> Scene {
    timeline(&Series::new(recording), recording, &TimelineView::fit(recording.step_count()), None, size)
}

fn stage(recording: &Recording, width_px: f32) -> Scene {
    let state = recording.state_at(recording.event_count()).unwrap();
    let last = recording.step_count().checked_sub(1);
    let limit = Series::new(recording).process_limit(recording.step_count());
    let drawn = Stage::new(&state, recording, &Changes::default(), last, &|_| None).with_limit(limit);
    drawn.scene(&StageView::default(), width_px)
}

fn has_text(scene: &Scene, part: &str) -> bool {
    scene.marks.iter().any(|mark| matches!(mark, Mark::Text { text, .. } if text.contains(part)))
}

fn is_barred(scene: &Scene) -> bool {
    let is_barred = |mark: &Mark| matches!(mark, Mark::Rect { fill, .. } if fill.pattern == Pattern::Barred);
    scene.marks.iter().any(is_barred)
}

/// A program with a memory fraction, under which a request fails.
fn under_a_fraction() -> Recording {
    let mut program = Program::new(Bytes::mib(256));
    program.set_limit(Bytes::mib(48)).alloc("a", Bytes::mib(20)).alloc("b", Bytes::mib(20));
    program.alloc("c", Bytes::mib(20));
    program.recording()
}

/// A program as a snapshot shows it: neither the device's memory nor a fraction is known, only that the
/// device had 900 MiB free.
fn refused_with_free_memory() -> Program {
    let mut program = Program::on_unknown_device(Bytes::gib(1));
    program.alloc("a", Bytes::mib(20)).alloc("b", Bytes::mib(20)).event(Event::OutOfMemory {
        requested: Bytes::mib(20),
        rounded: Bytes::mib(20),
        segment_size: Bytes::mib(20),
        stream: StreamId::DEFAULT,
        device_free: Bytes::mib(900),
        is_rejected: false,
    });
    program.failed();
    program
}

#[test]
fn a_memory_fraction_is_a_line_with_its_value_and_what_lies_beyond_is_barred() {
    let recording = under_a_fraction();
    for size in [Size::new(390.0, 260.0), Size::new(900.0, 300.0), Size::new(1900.0, 420.0)] {
        let scene = over_time(&recording, size);
        assert_texts_are_apart(&scene);
        assert!(is_barred(&scene), "{scene}");
        for words in ["limit 48 MiB", "out of memory"] {
            assert!(has_text(&scene, words), "{words} at {}: {scene}", size.width_px);
        }
    }
    for width in [360.0, 700.0, 1300.0] {
        let scene = stage(&recording, width);
        assert_texts_are_apart(&scene);
        assert!(is_barred(&scene) && has_text(&scene, "not for this process"), "{width}: {scene}");
    }
    // Of 256 MiB, 8 may still be reserved.
    assert!(has_text(&stage(&recording, 1300.0), "208 MiB"));
}

#[test]
fn a_failed_request_shows_between_which_bytes_the_limit_is() {
    let recording = refused_with_free_memory().recording();
    let limit = Series::new(&recording).process_limit(2).unwrap();
    let refused = Bytes::new(Bytes::mib(60).get() - 1);
    assert_eq!(limit, OomLimit { lowest: Bytes::mib(40), highest: refused, used_by_others: Bytes::ZERO });
    let scene = over_time(&recording, Size::new(900.0, 300.0));
    assert!(is_barred(&scene), "{scene}");
    assert!(has_text(&scene, "limit at least 40 MiB") && has_text(&scene, "limit below 60 MiB"), "{scene}");
    assert_texts_are_apart(&scene);
    // The band between the bounds lies below the area beyond the limit, and ends at the lower bound.
    let rects = |wanted: Pattern, role: Role| -> Vec<Rect> {
        let of = |mark: &Mark| match mark {
            Mark::Rect { rect, fill, .. } if fill.pattern == wanted && fill.role == role => Some(*rect),
            _ => None,
        };
        scene.marks.iter().filter_map(of).collect()
    };
    let (bands, beyond) = (rects(Pattern::Faint, Role::Limit), rects(Pattern::Barred, Role::Free));
    let (Some(band), Some(beyond)) = (bands.first(), beyond.first()) else { panic!("{scene}") };
    assert!((beyond.bottom_px() - band.y_px).abs() < 0.1 && band.height_px > 18.0, "{band:?} {beyond:?}");
    // In a figure without room for two texts, one has both bounds.
    let scene = over_time(&recording, Size::new(900.0, 90.0));
    assert!(!has_text(&scene, "limit at least"), "{scene}");
    let scene = stage(&recording, 1300.0);
    assert!(is_barred(&scene) && has_text(&scene, "limit between 40 MiB and 60 MiB"), "{scene}");
    let state = recording.state_at(recording.event_count()).unwrap();
    let words = describe_target(TargetId::Limit, &state, &recording).unwrap();
    assert!(words.contains("limit of the process"), "{words}");
}

#[test]
fn a_limit_that_a_later_moment_exceeds_is_none_of_the_run() {
    let mut program = refused_with_free_memory();
    program.alloc("c", Bytes::mib(100));
    assert_eq!(Series::new(&program.recording()).process_limit(2), None);
}

#[test]
fn without_a_limit_nothing_is_barred_and_the_legend_has_no_word_for_it() {
    let mut program = Program::new(Bytes::mib(64));
    program.alloc("a", Bytes::mib(20)).alloc("b", Bytes::mib(60));
    let recording = program.recording();
    for scene in [over_time(&recording, Size::new(900.0, 300.0)), stage(&recording, 900.0)] {
        assert!(!is_barred(&scene) && !has_text(&scene, "limit"), "{scene}");
    }
    assert!(matches!(recording.outcome(1), StepOutcome::OutOfMemory(_)));
}

/// The rectangles of a failed request: hatched, in the color of failures.
fn requests(scene: &Scene) -> Vec<Rect> {
    let of = |mark: &Mark| match mark {
        Mark::Rect { rect, fill, .. } if fill.role == Role::Failure && fill.pattern == Pattern::Hatch => {
            Some(*rect)
        }
        _ => None,
    };
    scene.marks.iter().filter_map(of).collect()
}

#[test]
fn a_failed_request_stands_on_the_reserved_bytes_and_overhangs_the_limit() {
    let recording = under_a_fraction();
    let scene = over_time(&recording, Size::new(900.0, 300.0));
    let [request] = requests(&scene)[..] else { panic!("{scene}") };
    // Of 48 MiB 40 are reserved, and the request needs 20.
    let limit =
        scene.targets.iter().find(|target| target.what == TargetId::Limit).unwrap().rect.center().y_px;
    let share = (limit - request.y_px) / request.height_px;
    assert!((share - 12.0 / 20.0).abs() < 0.05, "{share} of {request:?} is above {limit}");
    assert!(has_text(&scene, "20 MiB asked for"), "{scene}");
    // The bar of the device shows the same.
    let scene = stage(&recording, 1300.0);
    let [missing] = requests(&scene)[..] else { panic!("{scene}") };
    let whole = scene.marks.iter().find_map(|mark| match mark {
        Mark::Frame { rect, role: Role::Failure, .. } => Some(*rect),
        _ => None,
    });
    let share = missing.width_px / whole.unwrap().width_px;
    assert!((share - 12.0 / 20.0).abs() < 0.05, "{share}");
}

/// An expandable segment of 100 MiB on a device of `capacity`, whose last 8 MiB are cached, and a request of
/// 32 MiB that fails.
fn growth_that_fails(capacity: Bytes) -> Recording {
    let mut program = Program::new(capacity);
    program.map(Bytes::mib(100)).alloc("kept", Bytes::mib(92));
    let device_free = capacity - Bytes::mib(100);
    program.event(Event::OutOfMemory {
        requested: Bytes::mib(32),
        rounded: Bytes::mib(32),
        segment_size: Bytes::mib(32),
        stream: StreamId::DEFAULT,
        device_free,
        is_rejected: false,
    });
    program.failed();
    program.recording()
}

/// How much of a failed request is drawn below the top of the reserved bytes, over time.
fn share_below_reserved(recording: &Recording) -> f32 {
    let scene = over_time(recording, Size::new(900.0, 300.0));
    let [request] = requests(&scene)[..] else { panic!("{scene}") };
    let of_cached = |mark: &Mark| match mark {
        Mark::Area { points, fill } if fill.role == Role::Cached => {
            points.iter().map(|point| point.y_px).min_by(f32::total_cmp)
        }
        _ => None,
    };
    let reserved = scene.marks.iter().find_map(of_cached).unwrap();
    (request.bottom_px() - reserved) / request.height_px
}

#[test]
fn a_segment_that_cannot_grow_enough_lacks_the_request_without_its_cached_end() {
    // A device with 20 MiB free, and one with 30 MiB, of which only a whole page of 20 MiB can be mapped.
    for capacity in [Bytes::mib(120), Bytes::mib(130)] {
        let recording = growth_that_fails(capacity);
        let scene = stage(&recording, 1300.0);
        assert_texts_are_apart(&scene);
        let [missing] = requests(&scene)[..] else { panic!("{scene}") };
        let whole = scene.marks.iter().find_map(|mark| match mark {
            Mark::Frame { rect, role: Role::Failure, .. } => Some(*rect),
            _ => None,
        });
        // Of 32 MiB, 8 are cached at the end of the segment and 20 can be mapped.
        let share = missing.width_px / whole.unwrap().width_px;
        assert!((share - 4.0 / 32.0).abs() < 0.02, "{share} on {capacity}: {scene}");
        assert!(has_text(&scene, "32 MiB needed, 8 MiB of it at the segment's end"), "{scene}");
    }
    // Over time the request begins within the cached bytes.
    let share = share_below_reserved(&growth_that_fails(Bytes::mib(120)));
    assert!((share - 8.0 / 32.0).abs() < 0.03, "{share}");
}

#[test]
fn a_memory_fraction_refuses_the_whole_segment_however_much_is_cached() {
    // The device has 924 MiB free: a fraction refused the request.
    let recording = growth_that_fails(Bytes::gib(1));
    let share = share_below_reserved(&recording);
    assert!(share.abs() < 0.03, "{share}");
    let limit = Series::new(&recording).process_limit(recording.step_count()).unwrap();
    assert_eq!((limit.lowest, limit.highest), (Bytes::mib(100), Bytes::mib(132) - Bytes::new(1)));
}

#[test]
fn a_request_that_fails_though_enough_is_free_stands_beside_the_largest_free_block() {
    let mut program = Program::new(Bytes::mib(64));
    let names: Vec<String> = (0..12).map(|number| format!("a{number}")).collect();
    for name in &names {
        program.alloc(name, Bytes::mib(5));
    }
    for name in names.iter().step_by(2) {
        program.free(name);
    }
    program.alloc("b", Bytes::mib(8));
    let scene = over_time(&program.recording(), Size::new(900.0, 300.0));
    assert!(has_text(&scene, "8 MiB asked for, 30 MiB free in pieces, the largest 5 MiB"), "{scene}");
    let [request] = requests(&scene)[..] else { panic!("{scene}") };
    let is_beside = |mark: &&Mark| {
        matches!(mark, Mark::Rect { rect, fill, .. } if fill.role == Role::Cached
            && (rect.bottom_px() - request.bottom_px()).abs() < 0.1
            && (rect.width_px - request.width_px).abs() < 0.1)
    };
    assert_eq!(scene.marks.iter().filter(is_beside).count(), 1, "{scene}");
}
