//! Columns of allocations, who holds the bytes, and grids of lifetimes, from snapshots that PyTorch wrote.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use blockyard_figure::{
    AddressMap, AllocationFilter, AllocationQuery, Allocations, AxisRange, Blame, Cell, Changes, Collector,
    ColorBy, FlameGraph, Grid, GridKind, GridView, GroupBy, GroupKey, Groups, MapView, Mark, Role, Size,
    TargetId, TimelineView, bytes_of, describe_event, describe_target, flame_scene, group_key, group_text,
    holder_text, holder_texts, holders, range_sums, rows_in, segment_map,
};
use blockyard_pytorch::snapshot;
use blockyard_record::{BlockState, Bytes, Recording};

const SNAPSHOTS: [&str; 6] = [
    "checkerboard_default_100",
    "long_lived_in_buffers_100",
    "mem_pool_cache_100",
    "rank0",
    "resnet50_amp",
    "side_stream_cache_80",
];

fn recording(name: &str) -> Arc<Recording> {
    let end = if name.starts_with("small") { "pickle" } else { "pickle.gz" };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/snapshots/{name}.{end}"));
    let bytes = std::fs::read(path).expect("the fixture");
    let file = snapshot::read(&*bytes, &mut |_| ControlFlow::Continue(())).expect("a snapshot");
    let found = blockyard_pytorch::trace::record(&file, 0, name, &mut |_| ControlFlow::Continue(()))
        .expect("a recording");
    Arc::new(found.recording)
}

/// Some moments of a recording, its first and its last among them.
fn moments(recording: &Recording) -> impl Iterator<Item = usize> {
    let last = recording.step_count();
    (0..=last).step_by((last / 23).max(1)).chain([last])
}

fn events_before(recording: &Recording, moment: usize) -> usize {
    moment.checked_sub(1).and_then(|step| recording.step(step)).map_or(0, |step| step.end)
}

#[test]
fn the_columns_are_the_blocks_of_each_moment() {
    for name in SNAPSHOTS {
        let recording = recording(name);
        let allocations = Collector::collect(recording.clone());
        for moment in moments(&recording) {
            let state = recording.state_at(events_before(&recording, moment)).expect("a state");
            let mut expected: Vec<_> = state
                .snapshot()
                .segments
                .iter()
                .flat_map(|segment| segment.blocks.iter().map(|block| (segment.stream, block.clone())))
                .filter(|(_, block)| block.state == BlockState::Allocated)
                .map(|(stream, block)| (block.allocation, block.addr, block.size, block.requested, stream))
                .collect();
            expected.sort_by_key(|(allocation, ..)| *allocation);
            let rows = allocations.allocated_at(moment);
            let found: Vec<_> = rows
                .iter()
                .map(|row| allocations.get(*row).expect("a row"))
                .map(|found| (Some(found.id), found.addr, found.size, found.requested, found.stream))
                .collect();
            assert_eq!(found, expected, "{name} after {moment} steps");
        }
    }
}

#[test]
fn every_grouping_adds_up_to_the_allocated_bytes() {
    for name in SNAPSHOTS {
        let recording = recording(name);
        let allocations = Collector::collect(recording.clone());
        for moment in moments(&recording) {
            let allocated = recording
                .state_at(events_before(&recording, moment))
                .expect("a state")
                .breakdown()
                .allocated();
            let rows = rows_in(&allocations, AllocationFilter::At(moment));
            assert_eq!(bytes_of(&allocations, &rows), allocated, "{name} after {moment} steps");
            for by in GroupBy::ALL {
                let holders = holders(&allocations, &recording, &rows, by);
                let sum: Bytes = holders.iter().map(|holder| holder.bytes).sum();
                assert_eq!(sum, allocated, "{name} after {moment} steps by {}", by.name());
                assert!(holders.is_sorted_by_key(|holder| std::cmp::Reverse(holder.bytes)));
            }
            let flame = FlameGraph::new(&allocations, &recording, &rows);
            let whole = flame.node(0).expect("the whole");
            assert_eq!((whole.bytes, whole.count), (allocated, rows.len()));
            let children = flame.children(0).iter().filter_map(|child| flame.node(*child));
            assert_eq!(children.map(|child| child.bytes).sum::<Bytes>(), allocated);
            // The bytes of a node are those of the rows below it.
            for place in flame.children(0) {
                let below = flame.rows_below(&allocations, &recording, &rows, *place);
                let node = flame.node(*place).expect("a node");
                assert_eq!((bytes_of(&allocations, &below), below.len()), (node.bytes, node.count));
            }
            // A name or a size is written whole or not at all.
            for width_px in [260.0, 480.0, 900.0] {
                let scene = flame_scene(&flame, recording.stacks(), AxisRange::WHOLE, 0, width_px, &|_| None);
                let mut texts = scene.marks.iter().filter_map(|mark| match mark {
                    Mark::Text { text, .. } => Some(text),
                    _ => None,
                });
                assert!(texts.all(|text| !text.contains('…')), "{name} at {width_px} pixels");
            }
        }
    }
}

/// A frame that only passes on to one other frame has no row, and each row is one line of text high.
#[test]
fn a_flame_graph_has_no_rows_for_frames_that_only_pass_on() {
    let mut passed = 0;
    for name in SNAPSHOTS {
        let recording = recording(name);
        let allocations = Collector::collect(recording.clone());
        let peak = moments(&recording).max_by_key(|moment| {
            bytes_of(&allocations, &rows_in(&allocations, AllocationFilter::At(*moment)))
        });
        let rows = rows_in(&allocations, AllocationFilter::At(peak.expect("a moment")));
        let flame = FlameGraph::new(&allocations, &recording, &rows);
        let scene = flame_scene(&flame, recording.stacks(), AxisRange::WHOLE, 0, 1200.0, &|_| None);
        let is_low = |height_px: f32| (20.0..=24.0).contains(&height_px);
        assert!(
            scene.targets.iter().all(|target| is_low(target.rect.height_px)),
            "{name}: a row is one line"
        );
        for target in &scene.targets {
            let TargetId::FlameNode(place) = target.what else { continue };
            let place = place as usize;
            let node = flame.node(place).expect("a node");
            let branches = place == 0 || node.stack.is_some() || flame.children(place).len() != 1;
            assert!(branches, "{name}: node {place}");
            let above = flame.passed_above(place);
            passed += above.len();
            for frame in above {
                assert_eq!(flame.node(frame).expect("a node").bytes, node.bytes);
            }
        }
        let has_count = |mark: &Mark| matches!(mark, Mark::Text { text, .. } if text.contains('\u{203a}'));
        assert!(!scene.marks.iter().any(has_count), "{name}: a count of frames says nothing in a row");
    }
    assert!(passed > 0, "the frames around a training loop pass on");
}

/// A frame of a library stands only for what a line of the program called, and no row has a name of C++.
#[test]
fn a_flame_graph_has_libraries_only_below_the_lines_that_call_them() {
    for name in SNAPSHOTS {
        let recording = recording(name);
        let allocations = Collector::collect(recording.clone());
        let rows = rows_in(&allocations, AllocationFilter::At(recording.step_count()));
        let flame = FlameGraph::new(&allocations, &recording, &rows);
        let stacks = recording.stacks();
        let is_of_library = |place: usize| {
            let id = flame.node(place).and_then(|node| node.frame);
            id.is_some_and(|id| stacks.frame(id).is_of_library())
        };
        let mut pending = vec![0];
        while let Some(place) = pending.pop() {
            assert!(!flame.text(stacks, place).contains("::"), "{name}: {}", flame.text(stacks, place));
            for child in flame.children(place) {
                assert!(!is_of_library(place) || is_of_library(*child), "{name}: below a library");
                pending.push(*child);
            }
        }
    }
}

/// The largest holders at the peak are named in the legend of lines.
#[test]
fn a_legend_of_lines_names_the_largest_holders_at_the_peak() {
    for name in SNAPSHOTS {
        let recording = recording(name);
        let allocations = Collector::collect(recording.clone());
        let at =
            |moment: &usize| bytes_of(&allocations, &rows_in(&allocations, AllocationFilter::At(*moment)));
        let peak = (0..=recording.step_count()).max_by_key(|moment| (at(moment), std::cmp::Reverse(*moment)));
        let rows = rows_in(&allocations, AllocationFilter::At(peak.expect("a moment")));
        let groups = Groups::new(&allocations, &recording, ColorBy::Line, None);
        let all = bytes_of(&allocations, &rows);
        for holder in holders(&allocations, &recording, &rows, GroupBy::Line).iter().take(3) {
            let text = group_text(&recording, holder.key);
            // A holder of a third of the memory has a separate color, whatever else holds memory.
            if holder.bytes.get() * 3 >= all.get() {
                let mut texts = groups.legend().iter().map(|entry| entry.text.as_str());
                assert!(texts.any(|entry| entry == text), "{name}: {text} has no color");
            }
        }
    }
}

/// Some rows that would have the same words are distinguished.
#[test]
fn holders_with_one_line_are_told_apart_by_a_frame_that_differs() {
    for name in SNAPSHOTS {
        let recording = recording(name);
        let allocations = Collector::collect(recording.clone());
        for moment in moments(&recording) {
            let rows = rows_in(&allocations, AllocationFilter::At(moment));
            let found = holders(&allocations, &recording, &rows, GroupBy::Stack);
            let plain: std::collections::BTreeSet<String> =
                found.iter().map(|holder| holder_text(&recording, holder)).collect();
            let texts = holder_texts(&recording, &found);
            let different: std::collections::BTreeSet<&String> = texts.iter().collect();
            assert_eq!(texts.len(), found.len());
            assert!(different.len() >= plain.len());
            assert!(
                found.len() == plain.len() || different.len() > plain.len(),
                "{name} after {moment} steps: {texts:?}"
            );
        }
    }
}

/// No two entries of a legend are alike, it names no frame of a library, and the line that a verdict blames is its
/// first entry with the first color, which no other line has.
#[test]
fn a_legend_of_lines_has_the_blamed_line_first() {
    for name in SNAPSHOTS {
        let recording = recording(name);
        let allocations = Collector::collect(recording.clone());
        let plain = Groups::new(&allocations, &recording, ColorBy::Line, None);
        assert!(plain.legend().iter().all(|entry| entry.role != Role::Group(0)), "{name}");
        assert!(
            !plain.legend().iter().any(|entry| entry.text.contains("::")),
            "{name}: {:?}",
            plain.legend()
        );
        for entry in plain.legend() {
            let blame = Blame { by: ColorBy::Line, group: Some(entry.text.clone()), what: "grows" };
            let groups = Groups::new(&allocations, &recording, ColorBy::Line, Some(&blame));
            let legend = groups.legend();
            let texts: std::collections::BTreeSet<&str> =
                legend.iter().map(|entry| entry.text.as_str()).collect();
            assert_eq!(texts.len(), legend.len(), "{name}: {legend:?}");
            let roles: std::collections::BTreeSet<_> = legend.iter().map(|entry| entry.role).collect();
            assert_eq!(roles.len(), legend.len(), "{name}: {legend:?}");
            assert!(legend.len() <= 8, "{name}: {}", legend.len());
            let count: usize = legend.iter().map(|entry| entry.count).sum();
            assert_eq!(count, allocations.len(), "{name}");
            if matches!(entry.role, Role::Group(1..=7)) {
                let first = legend.first().expect("an entry");
                assert_eq!((&first.text, first.role), (&entry.text, Role::Group(0)), "{name}");
                assert_eq!((first.blame, first.count), (Some("grows"), entry.count), "{name}");
            }
        }
    }
}

#[test]
fn what_has_no_stack_has_one_color_in_every_grouping() {
    let mut found = 0;
    for name in SNAPSHOTS {
        let recording = recording(name);
        let allocations = Collector::collect(recording.clone());
        for by in [ColorBy::Line, ColorBy::Category] {
            let groups = Groups::new(&allocations, &recording, by, None);
            for row in 0..allocations.len() {
                let id = allocations.id(row).expect("an allocation");
                let has_stack = recording.stacks().frames(recording.allocation_stack(id)).len() > 0;
                let role = groups.role(row);
                let is_that_color = role == Role::Category(Role::CATEGORY_COLORS - 1);
                // Which of those without a stack are gradients is inferred, as a category.
                let is_gradient = by == ColorBy::Category && allocations.is_gradient_without_stack(row);
                assert!(has_stack || is_that_color || is_gradient, "{name} by {}: {role:?}", by.name());
                // Answers have one row for allocations without a stack and for PyTorch's own code.
                let key = group_key(&allocations, &recording, row, GroupBy::Line);
                let is_own_code =
                    by == ColorBy::Line && key == Some(GroupKey::Library { is_workspace: false });
                assert!(!has_stack || is_that_color == is_own_code, "{name} by {}: {role:?}", by.name());
                found += usize::from(!has_stack);
            }
        }
    }
    assert!(found > 100, "{found}");
}

/// A table, the stacked figure and the segment map ask for the color of a row, and get the same one for each
/// allocation of a group.
#[test]
fn every_allocation_of_a_holder_has_the_color_of_its_first_row() {
    for name in SNAPSHOTS {
        let recording = recording(name);
        let allocations = Collector::collect(recording.clone());
        let rows: Vec<usize> = (0..allocations.len()).collect();
        for (by, color) in [(GroupBy::Line, ColorBy::Line), (GroupBy::Stream, ColorBy::Stream)] {
            let groups = Groups::new(&allocations, &recording, color, None);
            for holder in holders(&allocations, &recording, &rows, by) {
                let own = rows
                    .iter()
                    .filter(|row| group_key(&allocations, &recording, **row, by) == Some(holder.key));
                let roles: std::collections::BTreeSet<Role> = own.map(|row| groups.role(*row)).collect();
                let text = group_text(&recording, holder.key);
                assert_eq!(
                    roles.into_iter().collect::<Vec<_>>(),
                    [groups.role(holder.row)],
                    "{name}: {text}"
                );
            }
        }
    }
}

#[test]
fn what_is_new_and_what_was_there_all_the_time_are_what_is_there_at_the_end() {
    let recording = recording("resnet50_amp");
    let allocations = Collector::collect(recording.clone());
    let (first, last) = (recording.step_count() / 3, recording.step_count() / 2);
    let all = rows_in(&allocations, AllocationFilter::At(last));
    let mut both = rows_in(&allocations, AllocationFilter::Throughout(first, last));
    let new = rows_in(&allocations, AllocationFilter::NewBetween(first, last));
    assert!(!both.is_empty() && !new.is_empty());
    both.extend(new);
    both.sort_unstable();
    assert_eq!(both, all);
    // What a range made is still there at its end, or was freed in it.
    let made = rows_in(&allocations, AllocationFilter::MadeBetween(first, last));
    let new = rows_in(&allocations, AllocationFilter::NewBetween(first, last));
    let sums = range_sums(&allocations, first, last);
    assert_eq!(sums.made, (made.len(), bytes_of(&allocations, &made)));
    assert_eq!(sums.kept, (new.len(), bytes_of(&allocations, &new)));
    // The allocated bytes at the end are those at the beginning, with what was made and without what was
    // freed.
    let allocated = |moment| bytes_of(&allocations, &rows_in(&allocations, AllocationFilter::At(moment)));
    assert_eq!(
        allocated(last).get() + sums.freed.1.get(),
        allocated(first).get() + sums.made.1.get(),
        "{sums:?}"
    );
    let most = (first..=last).map(|moment| allocations.active_bytes(moment)).max();
    assert_eq!(Some(sums.peak.0), most);
    // The order of the two moments does not matter.
    assert_eq!(
        rows_in(&allocations, AllocationFilter::NewBetween(last, first)),
        rows_in(&allocations, AllocationFilter::NewBetween(first, last))
    );
}

#[test]
fn a_search_finds_stacks_addresses_sizes_and_streams() {
    let recording = recording("rank0");
    let allocations = Collector::collect(recording.clone());
    let all: Vec<usize> = (0..allocations.len()).collect();
    let find = |text: &str| AllocationQuery::parse(text).filter(&allocations, &recording, &all);
    assert_eq!(find("").len(), all.len());
    let adam = find("ADAM.py");
    assert!(!adam.is_empty() && adam.len() < all.len());
    assert_eq!(find("adam.py no_such_function"), Vec::<usize>::new());
    let some = allocations.get(adam[0]).expect("a row");
    let inside = format!("0x{:x}", some.addr.get() + some.size.get() - 1);
    assert!(find(&inside).contains(&adam[0]));
    assert!(find(&format!("{}B", some.size.get())).contains(&adam[0]));
    let large = find(">10MiB");
    assert!(!large.is_empty());
    assert!(large.iter().all(|row| allocations.get(*row).is_some_and(|found| found.size > Bytes::mib(10))));
    let of_streams: usize =
        (0..allocations.streams().len()).map(|at| find(&format!("stream:{at}")).len()).sum();
    assert_eq!((allocations.streams().len(), of_streams), (3, all.len()));
}

fn whole(allocations: &Allocations, kind: GridKind, map: &AddressMap) -> GridView {
    let steps = TimelineView::fit(allocations.moments() - 1);
    let high = match kind {
        GridKind::Address => map.total(),
        GridKind::Stacked => allocations.most_active(&steps),
    };
    #[expect(clippy::cast_precision_loss, reason = "a device has less than 2^53 bytes")]
    GridView { steps, low: 0.0, high: high.get() as f64 }
}

#[test]
fn a_grid_shows_only_what_is_there() {
    for name in SNAPSHOTS {
        let recording = recording(name);
        let allocations = Collector::collect(recording.clone());
        let map = AddressMap::new(&allocations);
        for kind in [GridKind::Address, GridKind::Stacked] {
            let view = whole(&allocations, kind, &map);
            let grid = Grid::new(&allocations, kind, view, 211, 160).drawn(&allocations, &map);
            let mut drawn = 0;
            for column in 0..211 {
                let moment = grid.moment(column).expect("a moment");
                for row in 0..160 {
                    if let Cell::Row(found) = grid.cell(column, row) {
                        assert!(allocations.is_active(found, moment), "{name}: {found} at {moment}");
                        drawn += 1;
                    }
                }
            }
            assert!(drawn > 0, "{name}: nothing is drawn");
        }
    }
}

#[test]
fn a_grid_shows_the_peak_at_any_width() {
    let recording = recording("resnet50_amp");
    let allocations = Collector::collect(recording.clone());
    let map = AddressMap::new(&allocations);
    let peak = (0..allocations.moments()).map(|moment| allocations.active_bytes(moment)).max();
    for width in [1, 7, 100, 1333] {
        let view = whole(&allocations, GridKind::Stacked, &map);
        let grid = Grid::new(&allocations, GridKind::Stacked, view, width, 90).drawn(&allocations, &map);
        let moments = (0..width).filter_map(|column| grid.moment(column));
        assert_eq!(moments.map(|moment| allocations.active_bytes(moment)).max(), peak, "{width} columns");
    }
}

#[test]
fn a_stacked_column_is_as_high_as_its_active_bytes() {
    let recording = recording("rank0");
    let allocations = Collector::collect(recording.clone());
    let map = AddressMap::default();
    let view = whole(&allocations, GridKind::Stacked, &map);
    let grid = Grid::new(&allocations, GridKind::Stacked, view, 300, 200).drawn(&allocations, &map);
    for column in 0..300 {
        let moment = grid.moment(column).expect("a moment");
        #[expect(clippy::cast_precision_loss, reason = "there are 200 cells")]
        let filled = (0..200).filter(|row| grid.cell(column, *row) != Cell::Nothing).count() as f64;
        #[expect(clippy::cast_precision_loss, reason = "a device has less than 2^53 bytes")]
        let expected = allocations.active_bytes(moment).get() as f64 / view.high * 200.0;
        assert!((filled - expected).abs() <= 1.0, "column {column}: {filled} of {expected}");
    }
}

#[test]
fn what_is_too_small_is_counted() {
    let recording = recording("resnet50_amp");
    let allocations = Collector::collect(recording.clone());
    let map = AddressMap::new(&allocations);
    // Two cells for all addresses: hardly anything is as high as half a cell.
    let view = whole(&allocations, GridKind::Address, &map);
    let grid = Grid::new(&allocations, GridKind::Address, view, 16_000, 2).drawn(&allocations, &map);
    let hidden = grid.most_hidden();
    assert!(hidden.count > 0 && !hidden.bytes.is_zero(), "{hidden:?}");
    for column in (0..16_000).step_by(997) {
        let moment = grid.moment(column).expect("a moment");
        assert!(grid.hidden(column).bytes <= allocations.active_bytes(moment));
    }
}

#[test]
fn each_allocation_of_one_moment_is_drawn_however_many_columns_show_it() {
    let recording = recording("resnet50_amp");
    let allocations = Collector::collect(recording.clone());
    let map = AddressMap::default();
    let mut view = whole(&allocations, GridKind::Stacked, &map);
    let steps = &mut view.steps;
    (steps.first_step, steps.last_step) = (7000.0, 7001.0);
    let grid = Grid::new(&allocations, GridKind::Stacked, view, 16_000, 2).drawn(&allocations, &map);
    assert_eq!(grid.most_hidden().count, 0);
    let column = |column: usize| [grid.cell(column, 0), grid.cell(column, 1)];
    assert!((1..16_000).all(|other| column(other) == column(0)));
}

#[test]
fn a_text_of_a_tensor_names_its_block_in_every_figure() {
    const NAME: &str = "saved for backward";
    let recording = recording("small_2.15");
    let state = recording.state_at(recording.event_count()).expect("a state");
    let map =
        segment_map(&state, &Changes::default(), &recording, &MapView::default(), Size::new(1280.0, 400.0));
    let is_label = |mark: &Mark| matches!(mark, Mark::Text { text, .. } if text.contains(NAME));
    assert!(map.marks.iter().any(is_label), "the segment map has no label");
    let blocks = state.snapshot().segments.into_iter().flat_map(|segment| segment.blocks);
    let named = |id| recording.name(id) == Some(NAME);
    let block = blocks.into_iter().find(|block| block.allocation.is_some_and(named)).expect("a named block");
    let tip = describe_target(TargetId::Block(block.id), &state, &recording).expect("words");
    assert!(tip.starts_with(NAME), "{tip}");
    let allocations = Collector::collect(recording.clone());
    let rows = rows_in(&allocations, AllocationFilter::At(recording.step_count()));
    let found = holders(&allocations, &recording, &rows, GroupBy::Stack);
    let texts: Vec<String> = found.iter().map(|holder| holder_text(&recording, holder)).collect();
    assert_eq!(
        texts,
        ["<module> snap.py:7 (saved for backward)", "<module> snap.py:5", "<module> snap.py:10"]
    );
    let before = |event: usize| recording.state_at(event).expect("a state");
    let events = recording.events_from(0).enumerate();
    let words = events.map(|(at, event)| describe_event(&event, &before(at), &recording));
    assert!(words.into_iter().any(|words| words.contains(NAME)), "no event has the name");
}
