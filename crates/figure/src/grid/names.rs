use super::{Cell, Grid};
use crate::geometry::Rect;
use crate::groups::Groups;
use crate::labels::{PLATE_PX, Strip, plated_text, roomiest};
use crate::numbers::count_px;
use crate::scene::{Scene, Weight};
use crate::text_width::{fitted, text_width_px};

const TEXT_PX: f32 = 11.0;
/// How long a name may be, the longest first.
const ROOMS_PX: [f32; 4] = [f32::MAX, 200.0, 130.0, 90.0];
/// This many columns are looked at, which is as exact as a name needs.
const MOST_COLUMNS: usize = 400;

impl Grid {
    /// The names of groups within their areas, to be drawn over the cells in `plot`: each where its group is the highest, as far as
    /// it has room there. `is_shown` says which places of the legend are drawn.
    #[must_use]
    pub fn names(&self, groups: &Groups, is_shown: impl Fn(usize) -> bool, plot: Rect) -> Scene {
        let mut scene = Scene::new(0.0, 0.0);
        let mut taken: Vec<Rect> = Vec::new();
        let strips = self.strips(groups, plot);
        for (place, (entry, strips)) in groups.legend().iter().zip(strips).enumerate() {
            if !is_shown(place) {
                continue;
            }
            // The whole name, or as many words of it as an area has room for.
            let texts = ROOMS_PX.map(|room_px| fitted(&entry.text, TEXT_PX, Weight::Bold, room_px));
            let found = texts.into_iter().flatten().find_map(|text| {
                let width = text_width_px(&text, TEXT_PX, Weight::Bold).ceil() + 8.0;
                Some((roomiest(&strips, width, PLATE_PX, &taken)?, text))
            });
            let Some((found, text)) = found else { continue };
            plated_text(&mut scene, found.center(), &text, TEXT_PX, Weight::Bold);
            taken.push(found.grown(2.0));
        }
        scene
    }

    /// The longest run of each group's cells in each of the columns that are looked at.
    fn strips(&self, groups: &Groups, plot: Rect) -> Vec<Vec<Strip>> {
        let (width, height) = self.size();
        let step = width.div_ceil(MOST_COLUMNS).max(1);
        let cell_px = (plot.width_px / count_px(width), plot.height_px / count_px(height));
        let mut strips: Vec<Vec<Strip>> = vec![Vec::new(); groups.legend().len()];
        for column in (0..width).step_by(step) {
            let mut longest = vec![(0, 0); strips.len()];
            let mut at = 0;
            while at < height {
                let group = self.group(groups, column, at);
                let from = at;
                while at < height && self.group(groups, column, at) == group {
                    at += 1;
                }
                if let Some(kept) = group.and_then(|group| longest.get_mut(group))
                    && at - from > kept.1 - kept.0
                {
                    *kept = (from, at);
                }
            }
            for (strips, (low, high)) in strips.iter_mut().zip(longest) {
                strips.push(Strip {
                    left_px: plot.x_px + count_px(column) * cell_px.0,
                    right_px: plot.x_px + count_px((column + step).min(width)) * cell_px.0,
                    top_px: plot.bottom_px() - count_px(high) * cell_px.1,
                    foot_px: plot.bottom_px() - count_px(low) * cell_px.1,
                });
            }
        }
        strips
    }

    /// The place in the legend of what a cell shows.
    fn group(&self, groups: &Groups, column: usize, row: usize) -> Option<usize> {
        match self.cell(column, row) {
            Cell::Row(found) => Some(groups.place(found)),
            _ => None,
        }
    }
}
