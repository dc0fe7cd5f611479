use blockyard_figure::{
    BreakdownClass, Fill, Mark, Rect, Role, Scene, Size, TargetId, Theme, breakdown_bar, breakdown_bar_height,
};
use blockyard_record::{Breakdown, Bytes, MemoryState};
use expect_test::{expect, expect_file};
use proptest::prelude::*;

use crate::program::{Program, ops, random, story};

fn state_after(step: usize) -> MemoryState {
    let recording = story().recording();
    recording.state_at(recording.step(step).unwrap().end).unwrap()
}

fn draw(state: &MemoryState, width_px: f32) -> Scene {
    breakdown_bar(state, Size::new(width_px, 0.0))
}

/// The rectangles of the classes in the bar that begins at `y_px`.
fn class_rects(scene: &Scene, y_px: f32) -> Vec<(Role, Rect)> {
    let fills = BreakdownClass::ALL.map(Fill::of);
    let rects = scene.marks.iter().filter_map(|mark| match mark {
        Mark::Rect { rect, fill, .. } if rect.y_px == y_px && fills.contains(fill) => {
            Some((fill.role, *rect))
        }
        _ => None,
    });
    rects.collect()
}

/// No two texts share a pixel, and none leaves the scene.
pub(crate) fn assert_texts_are_apart(scene: &Scene) {
    let texts: Vec<_> = scene.marks.iter().filter(|mark| matches!(mark, Mark::Text { .. })).collect();
    let visible = |mark: &Mark| {
        let bounds = mark.bounds();
        match mark {
            Mark::Text { clip: Some(clip), .. } => {
                let right = bounds.right_px().min(clip.right_px());
                Rect { width_px: right - bounds.x_px, ..bounds }
            }
            _ => bounds,
        }
    };
    for (index, text) in texts.iter().enumerate() {
        let bounds = visible(text);
        assert!(bounds.x_px >= -0.5 && bounds.right_px() <= scene.width_px + 0.5, "{text} leaves the scene");
        for other in &texts[..index] {
            assert!(!bounds.overlaps(&visible(other)), "{text} lies over {other}");
        }
    }
}

#[test]
fn the_bar_brackets_and_peaks_of_a_busy_moment() {
    expect![[r#"
        scene 900 x 204
        rect 0,40 141x84 Requested
        rect 141,40 1x84 Rounding back-hatch
        rect 142,40 47x84 Pending hatch
        line 142.5,40 142.5,124 Background
        rect 189,40 318x84 Cached dots
        line 189.5,40 189.5,124 Background
        rect 507,40 393x84 Free faint
        line 507.5,40 507.5,124 Background
        frame 0,40 900x84 Free
        line 0.5,15.5 0.5,39 TextMuted
        line 506.5,15.5 506.5,39 TextMuted
        line 0,15.5 507,15.5 TextMuted
        text "reserved 54 MiB" 204,12 12px Text bold
        line 0.5,34.5 0.5,39 TextMuted
        line 141.5,34.5 141.5,39 TextMuted
        line 0,34.5 142,34.5 TextMuted
        text "allocated 15 MiB" 21,31 12px Text bold
        line 214.5,40 214.5,129 Background 4px
        line 214.5,40 214.5,129 PeakAllocated dashed 2px
        area 214.5,125 218.5,131 210.5,131 PeakAllocated
        text "peak allocated 22.86 MiB" 150,142 11px PeakAllocated
        line 506.5,40 506.5,129 Background 4px
        line 506.5,40 506.5,129 PeakReserved dotted 2px
        area 506.5,125 510.5,131 502.5,131 PeakReserved
        text "peak reserved 54 MiB" 450,142 11px PeakReserved
        text "requested" 70.5,78 12px TextOnRequested middle bold
        text "15 MiB" 70.5,94 12px TextOnRequested middle
        rect 335,67 50x16 Background
        text "cached" 360,78 12px Text middle bold
        rect 277,83 166x16 Background
        text "33.99 MiB · 63% of reserved" 360,94 12px Text middle
        text "free" 703.5,78 12px Text middle bold
        text "42 MiB · 44% of the device" 703.5,94 12px Text middle
        rect 0,171 14x14 Requested outline Requested
        text "requested" 20,182 12px Text bold clip 0,170 176x34
        text "15 MiB · 28% of reserved" 20,197 12px TextMuted clip 0,170 176x34
        rect 180,171 14x14 Rounding back-hatch outline Rounding
        text "rounding" 200,182 12px Text bold clip 180,170 176x34
        text "96 B · <0.1% of reserved" 200,197 12px TextMuted clip 180,170 176x34
        rect 360,171 14x14 Pending hatch outline Pending
        text "pending" 380,182 12px Text bold clip 360,170 176x34
        text "5 MiB · 9.3% of reserved" 380,197 12px TextMuted clip 360,170 176x34
        rect 540,171 14x14 Cached dots outline Cached
        text "cached" 560,182 12px Text bold clip 540,170 176x34
        text "33.99 MiB" 560,197 12px TextMuted clip 540,170 176x34
        rect 720,171 14x14 Free faint outline Free
        text "free" 740,182 12px Text bold clip 720,170 176x34
        text "42 MiB · 44% of the device" 740,197 12px TextMuted clip 720,170 176x34
        target 0,40 141x84 Class(Requested)
        target 141,40 1x84 Class(Rounding)
        target 142,40 47x84 Class(Pending)
        target 189,40 318x84 Class(Cached)
        target 507,40 393x84 Class(Free)
        target 209.5,40 10x92 PeakAllocated
        target 149.7,131 129.7x14 PeakAllocated
        target 501.5,40 10x92 PeakReserved
        target 450.3,131 112.3x14 PeakReserved
        target 0,170 176x34 Class(Requested)
        target 180,170 176x34 Class(Rounding)
        target 360,170 176x34 Class(Pending)
        target 540,170 176x34 Class(Cached)
        target 720,170 176x34 Class(Free)
    "#]]
    .assert_eq(&draw(&state_after(7), 900.0).to_string());
}

#[test]
fn a_little_on_a_large_device_is_enlarged_over_the_whole() {
    let mut program = Program::new(Bytes::gib(140));
    program.alloc("a", Bytes::mib(301)).alloc("b", Bytes::mib(3)).free("b").alloc("c", Bytes::kib(5));
    program.set_limit(Bytes::gib(70));
    let svg = draw(program.state(), 900.0).to_svg(Theme::Light, "Memory", "The breakdown of a device.");
    expect_file!["./breakdown-enlarged.svg"].assert_eq(&svg);
}

#[test]
fn nothing_reserved_is_drawn_too() {
    let scene = draw(&MemoryState::new(Bytes::gib(1)), 600.0);
    assert_eq!(class_rects(&scene, 40.0), [(Role::Free, Rect::new(0.0, 40.0, 600.0, 40.0))]);
    assert_texts_are_apart(&scene);
    assert_texts_are_apart(&draw(&MemoryState::new(Bytes::ZERO), 600.0));
}

#[test]
fn a_point_of_the_bar_tells_its_class() {
    let scene = draw(&state_after(7), 900.0);
    let classes: Vec<_> =
        (0..9).map(|x| scene.hit(x as f32 * 100.0 + 50.0, 70.0).map(|target| target.what)).collect();
    let class = |class| Some(TargetId::Class(class));
    assert_eq!(classes[0], class(BreakdownClass::Requested));
    assert_eq!(classes[1], class(BreakdownClass::Pending));
    assert_eq!(classes[3], class(BreakdownClass::Cached));
    assert_eq!(classes[8], class(BreakdownClass::Free));
}

#[test]
fn broken_sizes_are_drawn_in_some_size() {
    for width in [f32::NAN, f32::INFINITY, -5.0, 0.0, 1.0, 1e9] {
        let scene = draw(&state_after(7), width);
        assert!(scene.width_px >= 1.0 && scene.height_px.is_finite());
        assert_eq!(scene.height_px, breakdown_bar_height(width));
    }
}

proptest! {
    #[test]
    fn classes_add_up_to_the_capacity_and_their_widths_to_the_bar(
        ops in ops(60),
        width in 40_u16..2000,
    ) {
        let recording = random(&ops).recording();
        let width = f32::from(width);
        for step in 0..recording.step_count() {
            let state = recording.state_at(recording.step(step).unwrap().end).unwrap();
            let breakdown: Breakdown = state.breakdown();
            let sum: Bytes = BreakdownClass::ALL.iter().map(|class| class.bytes(&breakdown)).sum();
            prop_assert_eq!(sum, recording.capacity());
            prop_assert_eq!(Some(breakdown), recording.breakdown_after(step));
            let scene = draw(&state, width);
            let rects = class_rects(&scene, 40.0);
            let mut x = 0.0;
            for (role, rect) in &rects {
                prop_assert_eq!(rect.x_px, x, "a gap before {:?}", role);
                x = rect.right_px();
            }
            prop_assert_eq!(x, width);
            for class in BreakdownClass::ALL {
                let is_drawn = rects.iter().any(|(role, rect)| *role == class.role() && rect.width_px >= 1.0);
                prop_assert_eq!(is_drawn, !class.bytes(&breakdown).is_zero(), "{:?}", class);
            }
        }
    }

    #[test]
    fn no_label_lies_over_another(ops in ops(40), width in 330_u16..1600, capacity in 0_u32..40) {
        let recording = random(&ops).recording();
        let state = recording.state_at(recording.event_count()).unwrap();
        assert_texts_are_apart(&draw(&state, f32::from(width)));
        let mut program = Program::new(Bytes::new(1 << capacity.max(23)));
        program.alloc("a", Bytes::mib(3)).set_limit(Bytes::new(1 << capacity));
        assert_texts_are_apart(&draw(program.state(), f32::from(width)));
    }
}
