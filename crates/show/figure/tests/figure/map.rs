use std::collections::BTreeSet;
use std::sync::Arc;

use blockyard_figure::{
    Changes, Direction, MapView, Mark, Role, Scene, SegmentZoom, Size, TargetId, Theme, map_text, next_block,
    pan_segment, scroll_to, segment_map, segment_map_height, zoom_segment,
};
use blockyard_record::{BlockId, Bytes, MemoryState, PoolId, Recording, counted};
use expect_test::{expect, expect_file};
use proptest::prelude::*;

use crate::apart::assert_texts_are_apart;
use crate::program::{Program, ops, random, story};

const SIZE: Size = Size::new(900.0, 400.0);

fn after(recording: &Recording, step: usize) -> (MemoryState, Changes) {
    let range = recording.step(step).unwrap();
    (recording.state_at(range.end).unwrap(), Changes::of(recording, range.start, range.end))
}

fn draw(recording: &Recording, step: usize, view: &MapView) -> Scene {
    let (state, changed) = after(recording, step);
    let height_px = segment_map_height(&state, &changed, view);
    segment_map(&state, &changed, recording, view, Size { height_px, ..SIZE })
}

fn blocks(state: &MemoryState) -> Vec<BlockId> {
    state.snapshot().segments.iter().flat_map(|segment| &segment.blocks).map(|block| block.id).collect()
}

/// Five segments of 2 MiB full of blocks of 512 bytes.
fn crowded() -> Program {
    let mut program = Program::new(Bytes::mib(64));
    for _ in 0..5 {
        program.full_segment(Bytes::mib(2), Bytes::new(512));
    }
    program
}

#[test]
fn a_step_that_splits_a_new_segment() {
    let mut program = Program::new(Bytes::mib(64));
    program.alloc("a", Bytes::new(3_400_000));
    expect![[r#"
        scene 900 x 54
        rect 0,25 172x24 PoolLarge
        frame 6,29 16x16 TextMuted
        text "L" 14,41 11px Text middle bold
        area 31,33 39,33 39,41 31,41 TextMuted
        text "20 MiB" 166,41 11px Text end
        text "default" 44,41 11px TextMuted
        rect 178,27 115x20 Requested
        rect 293,27 1x20 Rounding back-hatch
        text "a" 183,41 11px TextOnRequested bold
        text "3.24 MiB" 195.4,41 11px TextOnRequested
        rect 294,27 600x20 Cached dots
        rect 298,30 57x14 Background
        text "16.76 MiB" 301,41 11px Text
        line 294.5,27 294.5,47 SplitEdge
        frame 178,27 716x20 SplitEdge
        frame 175,24 722x26 Changed 2px
        frame 175,24 122x26 Changed 2px
        line 294,27 294,47 Background 4px
        line 294,24 294,50 Changed 2px
        area 290,24 298,24 294,30 Changed
        rect 0,0 900x23 Background
        line 0,22.5 900,22.5 Grid
        text "pool, stream" 6,15 11px TextMuted
        text "size" 166,15 11px TextMuted end
        text "1 segment" 894,15 11px TextMuted end
        text "blocks by address, all to one scale: the whole width is 20 MiB" 178,15 11px TextMuted
        target 0,24 174x26 Segment(SegmentId(0))
        target 178,27 116x20 Block(BlockId(1))
        target 294,27 600x20 Block(BlockId(0))
    "#]]
    .assert_eq(&draw(&program.recording(), 0, &MapView::default()).to_string());
}

#[test]
fn allocated_blocks_take_colors_of_their_own_where_they_have_them() {
    let mut program = Program::new(Bytes::mib(64));
    program.alloc("a", Bytes::mib(3));
    program.alloc("b", Bytes::mib(2));
    let recording = program.recording();
    let mut scene = draw(&recording, 1, &MapView::default());
    let fills = |scene: &Scene, role: Role| {
        scene.marks.iter().filter(|mark| matches!(mark, Mark::Rect { fill, .. } if fill.role == role)).count()
    };
    let (requested, cached) = (fills(&scene, Role::Requested), fills(&scene, Role::Cached));
    let (state, _) = after(&recording, 1);
    let allocated = |id: BlockId| state.block(id).is_some_and(|block| block.allocation.is_some());
    let first = blocks(&state).into_iter().find(|id| allocated(*id));
    scene.color_blocks(|id| (Some(id) == first || !allocated(id)).then_some(Role::Group(3)));
    assert_eq!((requested, fills(&scene, Role::Requested)), (2, 1));
    assert_eq!((fills(&scene, Role::Group(3)), fills(&scene, Role::Cached)), (1, cached));
}

#[test]
fn a_story_as_a_map() {
    let recording = story().recording();
    let (state, _) = after(&recording, 12);
    let selected = blocks(&state).get(2).copied();
    let scene = draw(&recording, 12, &MapView { selected, ..MapView::default() });
    expect_file!["./map-story.svg"].assert_eq(&scene.to_svg(Theme::Dark, "Segments", "A map."));
}

#[test]
fn a_released_segment_leaves_a_row_for_one_step() {
    let recording = story().recording();
    let scene = draw(&recording, 12, &MapView::default());
    let released: Vec<_> = scene.targets.iter().filter(|t| matches!(t.what, TargetId::Released(_))).collect();
    assert_eq!(released.len(), 1);
    // The row of the released segment is not a segment any more.
    let segments = counted(after(&recording, 12).0.segments().count(), "segment");
    let note = format!("{segments}, 1 just released");
    assert!(
        scene.marks.iter().any(|mark| matches!(mark, Mark::Text { text, .. } if *text == note)),
        "{note}"
    );
    let next = draw(&recording, 13, &MapView::default());
    assert!(!next.targets.iter().any(|target| matches!(target.what, TargetId::Released(_))));
}

#[test]
fn blocks_too_narrow_to_draw_are_counted_and_add_up() {
    let program = crowded();
    let state = program.state().clone();
    let recording = program.recording();
    let scene = segment_map(&state, &Changes::default(), &recording, &MapView::default(), SIZE);
    let mut count = 0;
    let mut bytes = Bytes::ZERO;
    for target in &scene.targets {
        if let TargetId::SmallBlocks { count: some, bytes: size, .. } = target.what {
            count += some as usize;
            bytes += size;
        }
    }
    assert_eq!((count, bytes), (5 * 4096, Bytes::mib(10)));
    let said = scene.marks.iter().any(
        |mark| matches!(mark, Mark::Text { text, .. } if text == "5 segments; 20,480 blocks (10 MiB) too narrow to tell apart"),
    );
    assert!(said, "{scene}");
}

#[test]
fn a_zoom_makes_narrow_blocks_reachable_and_keeps_the_byte_under_the_pointer() {
    let program = crowded();
    let state = program.state().clone();
    let recording = program.recording();
    let segment = state.segments().next().unwrap().id;
    let mut view = MapView::default();
    for _ in 0..8 {
        view.zoom = zoom_segment(&state, &view, segment, 536.0, 2.0, SIZE);
    }
    let zoom = view.zoom.unwrap();
    assert_eq!((zoom.from, zoom.to), (Bytes::new(1_044_480), Bytes::new(1_052_672)));
    let scene = segment_map(&state, &Changes::default(), &recording, &view, SIZE);
    let found = scene.hit(536.0 + 30.0, 36.0).map(|target| target.what);
    let block = state.segment(segment).unwrap().blocks[2048].id;
    assert_eq!(found, Some(TargetId::Block(block)));
    assert_texts_are_apart(&scene);
    let moved = pan_segment(&state, &view, -1e9).unwrap();
    assert_eq!((moved.from, moved.to), (Bytes::ZERO, Bytes::kib(8)));
    for _ in 0..8 {
        view.zoom = zoom_segment(&state, &view, segment, 536.0, 0.5, SIZE);
    }
    assert_eq!(view.zoom, None);
}

#[test]
fn unsound_zooms_and_sizes_are_drawn_as_the_whole() {
    let recording = story().recording();
    let (state, changed) = after(&recording, 7);
    let segment = state.segments().next().unwrap().id;
    for (from, to) in [(5, 5), (9, 3), (u64::MAX, u64::MAX), (0, u64::MAX)] {
        let zoom = Some(SegmentZoom { segment, from: Bytes::new(from), to: Bytes::new(to) });
        let view = MapView { zoom, scroll_px: f32::NAN, ..MapView::default() };
        for size in [SIZE, Size::new(f32::NAN, 0.0), Size::new(3.0, 3.0)] {
            assert!(segment_map(&state, &changed, &recording, &view, size).marks.len() < 500);
        }
    }
    let empty = MemoryState::new(Bytes::gib(1));
    let view = MapView::default();
    assert!(segment_map(&empty, &changed, &recording, &view, SIZE).marks.len() < 50);
    assert_eq!(next_block(&empty, &view, None, Direction::Right), None);
}

#[test]
fn hovering_and_choosing_move_nothing() {
    let recording = story().recording();
    let (state, _) = after(&recording, 7);
    let plain = draw(&recording, 7, &MapView::default());
    for id in blocks(&state) {
        let view = MapView { selected: Some(id), hovered: Some(TargetId::Block(id)), ..MapView::default() };
        let scene = draw(&recording, 7, &view);
        assert_eq!(scene.targets, plain.targets);
        let rest: Vec<_> = scene.marks.iter().filter(|mark| plain.marks.contains(mark)).collect();
        assert_eq!(rest.len(), plain.marks.len());
    }
}

#[test]
fn two_thousand_segments_cost_what_thirty_do() {
    let mut program = Program::new(Bytes::gib(64));
    for _ in 0..2000 {
        program.full_segment(Bytes::mib(12), Bytes::mib(12));
    }
    let state = program.state().clone();
    let recording = program.recording();
    let view = MapView { scroll_px: 30_000.0, ..MapView::default() };
    let scene = segment_map(&state, &Changes::default(), &recording, &view, SIZE);
    assert!(scene.marks.len() < 250, "{} marks", scene.marks.len());
    let said = scene
        .marks
        .iter()
        .any(|mark| matches!(mark, Mark::Text { text, .. } if text == "segments 1,154 to 1,169 of 2,000"));
    assert!(said, "{scene}");
}

#[test]
fn the_keyboard_stays_at_the_ends_and_keeps_its_place_between_rows() {
    let recording = story().recording();
    let (state, _) = after(&recording, 7);
    let all = blocks(&state);
    let go = |from: usize, direction| {
        let found = next_block(&state, &MapView::default(), Some(all[from]), direction);
        found.and_then(|id| all.iter().position(|other| *other == id)).unwrap()
    };
    // Rows: weights | bias, rest | x, hidden, rest | copy, rest.
    assert_eq!(go(0, Direction::Left), 0);
    assert_eq!(go(7, Direction::Right), 7);
    assert_eq!(go(0, Direction::Down), 2);
    assert_eq!(go(3, Direction::Down), 6);
    assert_eq!(go(4, Direction::Up), 2);
    assert_eq!((go(4, Direction::Home), go(4, Direction::End)), (3, 5));
    assert_eq!((go(4, Direction::First), go(4, Direction::Last)), (0, 7));
}

fn views() -> impl Strategy<Value = MapView> {
    (-50.0_f32..900.0).prop_map(|scroll_px| MapView { scroll_px, ..MapView::default() })
}

proptest! {
    #[test]
    fn the_keyboard_reaches_every_block(ops in ops(80), view in views()) {
        let recording = random(&ops).recording();
        let state = recording.state_at(recording.event_count()).unwrap();
        let all: BTreeSet<_> = blocks(&state).into_iter().collect();
        let mut seen = BTreeSet::new();
        let mut at = next_block(&state, &view, None, Direction::Right);
        let mut path = Vec::new();
        while let Some(block) = at.filter(|block| seen.insert(*block)) {
            path.push(block);
            at = next_block(&state, &view, Some(block), Direction::Right);
        }
        prop_assert_eq!(&seen, &all);
        for pair in path.windows(2) {
            prop_assert_eq!(next_block(&state, &view, Some(pair[1]), Direction::Left), Some(pair[0]));
        }
        for direction in [Direction::Up, Direction::Down, Direction::Home, Direction::End] {
            for block in &path {
                prop_assert!(next_block(&state, &view, Some(*block), direction).is_some_and(|to| all.contains(&to)));
            }
        }
    }

    #[test]
    fn what_is_drawn_is_what_is_hit(ops in ops(80), view in views(), width in 300_u16..1500, height in 60_u16..500) {
        let recording = random(&ops).recording();
        let step = recording.step_count();
        prop_assume!(step > 0);
        let (state, changed) = after(&recording, step - 1);
        let size = Size::new(f32::from(width), f32::from(height));
        let scene = segment_map(&state, &changed, &recording, &view, size);
        for target in &scene.targets {
            let rect = target.rect;
            prop_assert!(rect.y_px >= 24.0 && rect.bottom_px() <= size.height_px, "{:?} is covered", target);
            // Only marks thinner than 2 pixels reach over a neighbor, so the middle of a wider target belongs
            // to that target.
            if rect.width_px > 4.0 {
                let middle = rect.center();
                prop_assert_eq!(scene.hit(middle.x_px, middle.y_px).map(|found| found.what), Some(target.what));
            }
            if let TargetId::Block(_) = target.what {
                let is_drawn = scene.marks.iter().any(|mark| {
                    matches!(mark, Mark::Rect { rect: drawn, fill, .. } if drawn.x_px == rect.x_px
                        && !matches!(fill.role, Role::Background | Role::PoolSmall | Role::PoolLarge)
                        && drawn.y_px <= rect.y_px && drawn.bottom_px() >= rect.bottom_px())
                });
                prop_assert!(is_drawn, "{:?} is not drawn there", target);
            }
        }
    }

    #[test]
    fn every_block_of_the_rows_in_sight_is_drawn_or_counted(ops in ops(80), view in views()) {
        let recording = random(&ops).recording();
        let state = recording.state_at(recording.event_count()).unwrap();
        let view = MapView { scroll_px: 0.0, ..view };
        let height_px = segment_map_height(&state, &Changes::default(), &view);
        let size = Size { height_px, ..SIZE };
        let scene = segment_map(&state, &Changes::default(), &recording, &view, size);
        let counted: usize = scene
            .targets
            .iter()
            .map(|target| match target.what {
                TargetId::Block(_) => 1,
                TargetId::SmallBlocks { count, .. } => count as usize,
                _ => 0,
            })
            .sum();
        prop_assert_eq!(counted, blocks(&state).len());
    }

    #[test]
    fn scrolling_to_a_block_shows_its_row(ops in ops(120), view in views(), at in any::<prop::sample::Index>()) {
        let recording = random(&ops).recording();
        let state = recording.state_at(recording.event_count()).unwrap();
        let all = blocks(&state);
        prop_assume!(!all.is_empty());
        let block = all[at.index(all.len())];
        let size = Size::new(900.0, 100.0);
        let scroll_px = scroll_to(&state, &Changes::default(), &view, block, size);
        let view = MapView { scroll_px, ..view };
        let scene = segment_map(&state, &Changes::default(), &recording, &view, size);
        let segment = state.segment_of(block).unwrap();
        let head = scene.targets.iter().find(|target| target.what == TargetId::Segment(segment));
        prop_assert_eq!(head.map(|target| target.rect.height_px), Some(26.0));
        prop_assert_eq!(scroll_to(&state, &Changes::default(), &view, block, size), scroll_px);
    }
}

/// Two segments outside of memory pools, a segment of a graph capture, two of a memory pool that the program
/// made; their order by address is mixed.
fn pooled() -> Program {
    let mut program = Program::new(Bytes::mib(256));
    let (capture, user) = (PoolId { capture: 1, user: 0 }, PoolId { capture: 0, user: 1 });
    program.alloc("a", Bytes::mib(12));
    program.in_pool(user).alloc("b", Bytes::mib(30)).alloc("c", Bytes::mib(3));
    program.in_pool(capture).alloc("d", Bytes::mib(14));
    program.in_pool(PoolId::DEFAULT).alloc("e", Bytes::mib(16));
    program
}

#[test]
fn segments_of_a_memory_pool_stand_under_its_name() {
    let recording = pooled().recording();
    let names = vec![(PoolId { capture: 0, user: 1 }, "scratch".to_owned())];
    let view = MapView { pool_names: Arc::new(names), ..MapView::default() };
    let scene = draw(&recording, 4, &view);
    let texts: Vec<&str> = scene
        .marks
        .iter()
        .filter_map(|mark| match mark {
            Mark::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .filter(|text| text.contains("reserved") || ["a", "b", "c", "d", "e"].contains(text))
        .collect();
    let default = "default pool: 2 segments, 28 MiB reserved";
    let user = "memory pool scratch (0, 1): 2 segments, 50 MiB reserved";
    let capture = "private pool (1, 0) of a graph capture: 1 segment, 14 MiB reserved";
    assert_eq!(texts, [default, "a", "e", user, "b", "c", capture, "d"]);
    assert!(scene.to_string().contains("5 segments"), "headings are no segments");
    // The keys go from row to row and never stop at a heading.
    let (state, _) = after(&recording, 4);
    let mut block = None;
    let mut seen = BTreeSet::new();
    while let Some(next) =
        next_block(&state, &view, block, Direction::Right).filter(|next| seen.insert(*next))
    {
        block = Some(next);
    }
    assert_eq!(seen.len(), blocks(&state).len());
    // Each block's row is reached by scrolling in a low window.
    let low = Size { height_px: 90.0, ..SIZE };
    for block in blocks(&state) {
        let scroll_px = scroll_to(&state, &Changes::default(), &view, block, low);
        let scene =
            segment_map(&state, &Changes::default(), &recording, &MapView { scroll_px, ..view.clone() }, low);
        assert!(scene.targets.iter().any(|target| target.what == TargetId::Block(block)), "{block:?}");
    }
    assert!(map_text(&state, &recording).contains("memory pool (0, 1): 2 segments, 50 MiB reserved\n"));
}
