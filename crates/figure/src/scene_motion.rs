//! The way from one picture of blocks to the next: blocks slide and change their width, while every text is that of the next picture.

use blockyard_record::BlockId;
use rustc_hash::FxHashMap;

use crate::geometry::{Point, Rect};
use crate::scene::{Mark, Scene, TargetId};

/// More blocks than these do not move: nobody could follow them, and a frame would cost too much.
const MOST_BLOCKS: usize = 600;
/// What belongs to a block extends beyond it by this much at most.
const MARGIN_PX: f32 = 6.0;

/// The motion from one scene to another.
#[derive(Clone, Debug)]
pub struct SceneMotion {
    to: Scene,
    /// The marks of `to` that move, each with the rectangle of its block before and after; a mark stays in its place in its block.
    marks: Vec<(usize, MovedBlock)>,
    /// The targets of `to` that move.
    targets: Vec<(usize, MovedBlock)>,
}

#[derive(Clone, Copy, Debug)]
struct MovedBlock {
    from: Rect,
    to: Rect,
}

impl SceneMotion {
    /// The motion between two pictures of one size; `None` if no block is in both of them at different places, or there are very many.
    #[must_use]
    pub fn new(from: &Scene, to: Scene) -> Option<Self> {
        let is_block = |what: TargetId| match what {
            TargetId::Block(block) => Some(block),
            _ => None,
        };
        let before: FxHashMap<BlockId, Rect> =
            from.targets.iter().filter_map(|target| Some((is_block(target.what)?, target.rect))).collect();
        if before.len() > MOST_BLOCKS || to.targets.len() > 2 * MOST_BLOCKS {
            return None;
        }
        let blocks: Vec<(usize, MovedBlock)> = to
            .targets
            .iter()
            .enumerate()
            .filter_map(|(place, target)| {
                let known = before.get(&is_block(target.what)?);
                let from = known.copied().unwrap_or(target.rect);
                Some((place, MovedBlock { from, to: target.rect }))
            })
            .collect();
        let targets: Vec<(usize, MovedBlock)> =
            blocks.iter().filter(|(_, moved)| moved.is_far()).copied().collect();
        if targets.is_empty() {
            return None;
        }
        let marks = to.marks.iter().enumerate().filter_map(|(place, mark)| {
            let bounds = mark.bounds();
            let home = blocks.iter().map(|(_, moved)| *moved).filter(|moved| moved.holds(&bounds));
            let home = home.min_by(|one, other| one.to.width_px.total_cmp(&other.to.width_px))?;
            home.is_far().then_some((place, home))
        });
        let marks = marks.collect();
        Some(Self { to, marks, targets })
    }

    /// The picture between the first one (`progress` 0) and the second one (1).
    #[must_use]
    pub fn at(&self, progress: f32) -> Scene {
        let progress = progress.clamp(0.0, 1.0);
        let eased = progress * progress * (3.0 - 2.0 * progress);
        let mut scene = self.to.clone();
        for (place, moved) in &self.marks {
            if let Some(mark) = scene.marks.get_mut(*place) {
                moved.shift(mark, eased);
            }
        }
        for (place, moved) in &self.targets {
            if let Some(target) = scene.targets.get_mut(*place) {
                target.rect = moved.rect_at(eased);
            }
        }
        scene
    }

    /// The second picture.
    #[must_use]
    pub fn end(&self) -> &Scene {
        &self.to
    }
}

impl MovedBlock {
    fn is_far(self) -> bool {
        let Self { from, to } = self;
        let edges = [(from.x_px, to.x_px), (from.right_px(), to.right_px()), (from.y_px, to.y_px)];
        edges.iter().any(|(one, other)| (one - other).abs() > 0.5)
    }

    /// Whether a mark with these bounds belongs to the block.
    fn holds(self, bounds: &Rect) -> bool {
        let room = self.to.grown(MARGIN_PX);
        bounds.x_px >= room.x_px
            && bounds.right_px() <= room.right_px()
            && bounds.y_px >= room.y_px - MARGIN_PX
            && bounds.bottom_px() <= room.bottom_px() + MARGIN_PX
    }

    fn rect_at(self, eased: f32) -> Rect {
        let Self { from, to } = self;
        let mix = |one: f32, other: f32| one + (other - one) * eased;
        Rect::new(
            mix(from.x_px, to.x_px),
            mix(from.y_px, to.y_px),
            mix(from.width_px, to.width_px),
            mix(from.height_px, to.height_px),
        )
    }

    /// Where a place in the block, or at its border, is.
    fn x_at(self, x: f32, eased: f32) -> f32 {
        let now = self.rect_at(eased);
        // What stands out of the block to a side stays as far out.
        if x <= self.to.x_px {
            return now.x_px + (x - self.to.x_px);
        }
        if x >= self.to.right_px() {
            return now.right_px() + (x - self.to.right_px());
        }
        now.x_px + (x - self.to.x_px) / self.to.width_px.max(1.0) * now.width_px
    }

    fn shift(self, mark: &mut Mark, eased: f32) {
        let now = self.rect_at(eased);
        let up = now.y_px - self.to.y_px;
        let moved = |rect: &Rect| {
            let (left, right) = (self.x_at(rect.x_px, eased), self.x_at(rect.right_px(), eased));
            Rect::new(left, rect.y_px + up, (right - left).max(0.0), rect.height_px)
        };
        let point = |at: &mut Point| *at = Point::new(self.x_at(at.x_px, eased), at.y_px + up);
        match mark {
            Mark::Rect { rect, .. } | Mark::Rounded { rect, .. } | Mark::Frame { rect, .. } => {
                *rect = moved(rect);
            }
            Mark::Line { from, to, .. } => {
                point(from);
                point(to);
            }
            Mark::Path { points, .. } | Mark::Area { points, .. } => points.iter_mut().for_each(point),
            // Letters keep their distance from the left end of the block, and are not wider than the block is now.
            Mark::Text { at, clip, .. } => {
                *at = Point::new(now.x_px + (at.x_px - self.to.x_px), at.y_px + up);
                *clip = Some(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fill::Fill;
    use crate::role::Role;
    use crate::scene::TextStyle;

    fn scene(left: f32, width: f32, text: &str) -> Scene {
        let mut scene = Scene::new(200.0, 40.0);
        let rect = Rect::new(left, 10.0, width, 20.0);
        scene.rect(rect, Fill::solid(Role::Requested), None);
        scene.text(Point::new(left + 4.0, 24.0), text, TextStyle::new(Role::Text, 10.0));
        scene.target(rect, TargetId::Block(BlockId::new(7)));
        scene
    }

    #[test]
    fn a_block_slides_and_its_text_is_the_next_one_from_the_start() {
        let (before, after) = (scene(0.0, 40.0, "3 MiB"), scene(60.0, 100.0, "5 MiB"));
        let motion = SceneMotion::new(&before, after.clone()).unwrap();
        let half = motion.at(0.5);
        assert_eq!(half.targets[0].rect, Rect::new(30.0, 10.0, 70.0, 20.0));
        assert!(matches!(&half.marks[0], Mark::Rect { rect, .. } if *rect == half.targets[0].rect));
        assert!(
            matches!(&half.marks[1], Mark::Text { at, text, .. } if text == "5 MiB" && *at == Point::new(34.0, 24.0))
        );
        assert_eq!(motion.at(1.0).targets, after.targets);
        assert_eq!(motion.at(0.0).targets, before.targets);
        assert!(SceneMotion::new(&after, after.clone()).is_none(), "nothing moves");
    }
}
