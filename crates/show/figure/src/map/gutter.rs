//! The head of each row of the segment map: pool, stream, size.

use blockyard_record::{Bytes, PoolId, PoolKind, Recording, StreamId, counted};

use crate::conversions::px;
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect};
use crate::labels::baseline;
use crate::map::rows::{PoolHeading, Row};
use crate::map::view::MapView;
use crate::role::Role;
use crate::scene::{Anchor, Dash, Mark, Scene, TextStyle, Weight};
use crate::text_width::{first_fitting, fitted, text_width_px};
use crate::words::pool_heading;

pub(super) const TEXT_PX: f32 = 11.0;

/// The index of the stream among all streams: 0 for the default stream.
fn stream_place(recording: &Recording, stream: StreamId) -> u8 {
    if stream == StreamId::DEFAULT {
        return 0;
    }
    let streams = recording.streams().iter().filter(|(id, _)| *id != StreamId::DEFAULT);
    let named = streams.map(|(id, _)| *id).position(|id| id == stream);
    // Handles of unnamed streams are addresses: their low bits are equal.
    let place =
        named.unwrap_or_else(|| usize::try_from((stream.get() ^ (stream.get() >> 5)) % 5).unwrap_or(0));
    // Places repeat after 250 streams, far more than there are different marks.
    u8::try_from(place % 250 + 1).unwrap_or(1)
}

/// The row's head: pool by letter and ground, stream by shape and name, and the bytes of its memory.
pub(super) fn draw_row_head(
    scene: &mut Scene,
    recording: &Recording,
    row: &Row,
    memory: Bytes,
    top_px: f32,
    (width_px, row_px): (f32, f32),
) {
    let (pool, stream, private) = match row {
        Row::Segment(info) => {
            (info.pool, info.stream, (info.pool_id != PoolId::DEFAULT).then_some(info.pool_id))
        }
        Row::Released(ghost) => {
            (ghost.pool, ghost.stream, (ghost.pool_id != PoolId::DEFAULT).then_some(ghost.pool_id))
        }
        Row::Heading(_) => return,
    };
    let (letter, ground, pattern) = match pool {
        PoolKind::Small => ("S", Role::PoolSmall, Pattern::Solid),
        PoolKind::Large => ("L", Role::PoolLarge, Pattern::Solid),
    };
    scene.add_rect(
        Rect::new(0.0, top_px + 1.0, width_px - 6.0, row_px - 2.0),
        Fill { role: ground, pattern },
        None,
    );
    let middle = top_px + row_px / 2.0;
    let text_y = baseline(middle, TEXT_PX);
    draw_pool(scene, pool, letter, middle);
    if private.is_some() {
        // A second line around the letter marks a segment that serves its memory pool alone.
        let around = Rect::new(4.0, middle - 10.0, 20.0, 20.0);
        scene.add_frame(around, Role::Limit, Dash::Solid, 1.0);
    }
    draw_stream(scene, stream_place(recording, stream), Point::new(35.0, middle));
    let size = memory.to_string();
    let size_width = text_width_px(&size, TEXT_PX, Weight::Normal);
    let right = width_px - 12.0;
    scene.add_text(
        Point::new(right, text_y),
        size,
        TextStyle::new(Role::Text, TEXT_PX).anchored(Anchor::End),
    );
    let room = right - size_width - 6.0 - 44.0;
    let name = recording.stream_name(stream);
    if let Some(name) = fitted(&name, TEXT_PX, Weight::Normal, room) {
        scene.add_text(Point::new(44.0, text_y), name, TextStyle::new(Role::TextMuted, TEXT_PX));
    }
}

/// The line over the segments of a memory pool: its mark, its name and number, how many segments it has and
/// their bytes.
pub(super) fn draw_pool_heading(
    scene: &mut Scene,
    heading: &PoolHeading,
    view: &MapView,
    top_px: f32,
    right_px: f32,
) {
    let PoolHeading { pool_id, place, segments, reserved } = *heading;
    let ground = Rect::new(0.0, top_px + 2.0, right_px, 20.0);
    scene.add_rect(ground, Fill { role: Role::PoolLarge, pattern: Pattern::Solid }, None);
    let middle = top_px + 12.0;
    draw_pool_mark(scene, place, Point::new(14.0, middle));
    let what = pool_heading(pool_id, view.pool_name(pool_id));
    let count = counted(segments, "segment");
    let texts = [
        format!("{what}: {count}, {reserved} reserved"),
        format!("pool {pool_id}: {count}, {reserved}"),
        format!("pool {pool_id}"),
    ];
    let room = right_px - 32.0;
    if let Some(text) = first_fitting(&texts, TEXT_PX, Weight::Bold, room) {
        let at = Point::new(28.0, baseline(middle, TEXT_PX));
        scene.add_text(at, text, TextStyle::new(Role::Text, TEXT_PX).bold());
    }
}

/// A square with the number of the memory pool, which is 0 for the default pool.
fn draw_pool_mark(scene: &mut Scene, place: usize, center: Point) {
    let square = Rect::new(center.x_px - 8.0, center.y_px - 8.0, 16.0, 16.0);
    scene.add_frame(square, Role::TextMuted, Dash::Solid, 2.0);
    let style = TextStyle::new(Role::Text, TEXT_PX).bold().anchored(Anchor::Middle);
    scene.add_text(Point::new(center.x_px, baseline(center.y_px, TEXT_PX)), place.to_string(), style);
}

/// A box around the letter: dashed for the small pool, whole for the large one.
fn draw_pool(scene: &mut Scene, pool: PoolKind, letter: &str, middle_px: f32) {
    let dash = if pool == PoolKind::Small { Dash::Dotted } else { Dash::Solid };
    scene.add_frame(Rect::new(6.0, middle_px - 8.0, 16.0, 16.0), Role::TextMuted, dash, 1.0);
    let style = TextStyle::new(Role::Text, TEXT_PX).bold().anchored(Anchor::Middle);
    scene.add_text(Point::new(14.0, baseline(middle_px, TEXT_PX)), letter, style);
}

/// A shape for each stream, in the color of text: colors are those of blocks, which may show something else.
fn draw_stream(scene: &mut Scene, place: u8, center: Point) {
    const SQUARE: &[(f64, f64)] = &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)];
    const DIAMOND: &[(f64, f64)] = &[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)];
    const UP: &[(f64, f64)] = &[(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)];
    const DOWN: &[(f64, f64)] = &[(-5.0, -4.0), (5.0, -4.0), (0.0, 5.0)];
    const HOURGLASS: &[(f64, f64)] = &[(-4.0, -5.0), (4.0, -5.0), (-4.0, 5.0), (4.0, 5.0)];
    const RIGHT: &[(f64, f64)] = &[(-4.0, -5.0), (5.0, 0.0), (-4.0, 5.0)];
    // The shapes of other streams than the default repeat; the name is beside the shape.
    let shape = match usize::from(place).checked_sub(1).map(|place| place % 5) {
        None => SQUARE,
        Some(0) => DIAMOND,
        Some(1) => UP,
        Some(2) => DOWN,
        Some(3) => HOURGLASS,
        Some(_) => RIGHT,
    };
    let points = shape.iter().map(|(x, y)| Point::new(center.x_px + px(*x), center.y_px + px(*y))).collect();
    scene.marks.push(Mark::Area { points, fill: Fill::solid(Role::TextMuted) });
}
