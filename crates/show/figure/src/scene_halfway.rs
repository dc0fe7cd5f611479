//! The picture between two pictures of blocks, which shows a change in two parts.

use blockyard_record::BlockId;
use rustc_hash::FxHashMap;

use crate::fill::{Fill, Pattern};
use crate::geometry::Rect;
use crate::role::Role;
use crate::scene::{Mark, Scene, TargetId};

/// With more marks than these the next picture is shown at once: no reader could follow the change, and
/// drawing the picture in the middle would cost too much.
const MAX_MARKS: usize = 4000;

impl Scene {
    /// The picture in the middle of the way to `next`: nothing has moved yet, blocks have their new states in
    /// their old places, and texts that go or come are left out. So a block that is freed changes its color
    /// in its place, and only then its border to its neighbors vanishes. `None` if the pictures have very
    /// many marks.
    pub fn halfway_to(&self, next: &Self) -> Option<Self> {
        if self.marks.len().max(next.marks.len()) > MAX_MARKS {
            return None;
        }
        let mut halfway = self.clone();
        halfway.marks.retain(|mark| !is_of_one_moment(mark) || next.marks.contains(mark));
        let after: FxHashMap<BlockId, Rect> = next.blocks().collect();
        let fills = next.fills();
        // A block that stayed or has grown over its neighbors begins at the old corner; a mark with another
        // corner belongs to another block or to another run of narrow blocks.
        let new_fill = |id: BlockId, before: &Rect| {
            let rect = after.get(&id)?;
            let is_over = rect.x_px <= before.x_px
                && rect.right_px() >= before.right_px()
                && (rect.y_px - before.y_px).abs() < 0.5;
            fills.get(&corner(rect)).copied().filter(|_| is_over)
        };
        let changed: FxHashMap<(u32, u32), Fill> =
            self.blocks().filter_map(|(id, rect)| Some((corner(&rect), new_fill(id, &rect)?))).collect();
        for mark in &mut halfway.marks {
            if let Mark::Rect { rect, fill, .. } | Mark::Rounded { rect, fill, .. } = mark
                && let Some(new) = changed.get(&corner(rect))
            {
                *fill = *new;
            }
        }
        Some(halfway)
    }

    fn blocks(&self) -> impl Iterator<Item = (BlockId, Rect)> {
        self.targets.iter().filter_map(|target| match target.what {
            TargetId::Block(id) => Some((id, target.rect)),
            _ => None,
        })
    }

    /// The first fill at each corner: that of a block, as its mark begins where its target does.
    fn fills(&self) -> FxHashMap<(u32, u32), Fill> {
        let mut fills = FxHashMap::default();
        for mark in &self.marks {
            if let Mark::Rect { rect, fill, .. } | Mark::Rounded { rect, fill, .. } = mark {
                fills.entry(corner(rect)).or_insert(*fill);
            }
        }
        fills
    }
}

fn corner(rect: &Rect) -> (u32, u32) {
    (rect.x_px.to_bits(), rect.y_px.to_bits())
}

/// Whether the mark belongs to one moment alone: a text, the ground of a text, the emphasis of a change.
fn is_of_one_moment(mark: &Mark) -> bool {
    match mark {
        Mark::Text { .. } => true,
        Mark::Rect { fill, .. } => fill.role == Role::Background && fill.pattern == Pattern::Solid,
        Mark::Frame { role, .. } | Mark::Line { role, .. } | Mark::Path { role, .. } => {
            *role == Role::Changed
        }
        Mark::Area { fill, .. } | Mark::Rounded { fill, .. } => fill.role == Role::Changed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Point;
    use crate::scene::TextStyle;

    fn scene(blocks: &[(u32, f32, f32, Role, &str)]) -> Scene {
        let mut scene = Scene::new(200.0, 40.0);
        for (id, left, width, role, text) in blocks {
            let rect = Rect::new(*left, 10.0, *width, 20.0);
            scene.add_rect(rect, Fill::solid(*role), None);
            scene.add_text(Point::new(left + 4.0, 24.0), *text, TextStyle::new(Role::Text, 10.0));
            scene.add_target(rect, TargetId::Block(BlockId::new(*id)));
        }
        scene
    }

    fn rects(scene: &Scene) -> Vec<(Rect, Role)> {
        let rect = |mark: &Mark| match mark {
            Mark::Rect { rect, fill, .. } => Some((*rect, fill.role)),
            _ => None,
        };
        scene.marks.iter().filter_map(rect).collect()
    }

    #[test]
    fn a_freed_block_changes_its_color_in_its_place_before_it_grows() {
        let held = scene(&[(1, 0.0, 30.0, Role::Requested, "3"), (2, 30.0, 170.0, Role::Cached, "17")]);
        let freed = scene(&[(1, 0.0, 200.0, Role::Cached, "20")]);
        let halfway = held.halfway_to(&freed).unwrap();
        let places = [Rect::new(0.0, 10.0, 30.0, 20.0), Rect::new(30.0, 10.0, 170.0, 20.0)];
        assert_eq!(rects(&halfway), places.map(|place| (place, Role::Cached)));
        assert!(halfway.marks.iter().all(|mark| !matches!(mark, Mark::Text { .. })), "no number of the ends");
        // The way back cuts the block before the front takes its color.
        assert_eq!(rects(&freed.halfway_to(&held).unwrap()), rects(&freed));
    }

    #[test]
    fn a_block_at_another_place_keeps_its_color() {
        let before = scene(&[(1, 0.0, 30.0, Role::Requested, "3"), (2, 30.0, 40.0, Role::Requested, "4")]);
        let after = scene(&[(1, 100.0, 30.0, Role::Cached, "3"), (2, 30.0, 40.0, Role::Requested, "4")]);
        let halfway = before.halfway_to(&after).unwrap();
        assert_eq!(rects(&halfway), rects(&before));
        let texts =
            halfway.marks.iter().filter(|mark| matches!(mark, Mark::Text { text, .. } if text == "4"));
        assert_eq!(texts.count(), 1, "a text that stays is there throughout");
    }
}
