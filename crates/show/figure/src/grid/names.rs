//! Names of groups on their areas: where they fit, and how they are shortened.

use super::{Cell, Grid};
use crate::coloring::Groups;
use crate::conversions::count_px;
use crate::geometry::Rect;
use crate::labels::{AreaStrip, PLATE_PX, draw_plated_text, roomiest_place};
use crate::scene::{Mark, Scene, Weight};
use crate::text_width::text_width_px;

const TEXT_PX: f32 = 11.0;
/// The sizes of letters in which a name is tried, the larger size first.
const SIZES_PX: [f32; 2] = [TEXT_PX, 10.0];
/// This many columns are looked at: each of them up to a large screen, so that no name lies over a part of
/// another area.
const MAX_COLUMNS: usize = 4000;

/// The name of a group and a shorter name that says most of it; none is cut off. For a line this is the line
/// without its function: `model.py:12`.
fn shorter_names(text: &str) -> Vec<&str> {
    // The line follows the name of the function that contains it.
    let line = text.rsplit(' ').next().filter(|line| line.contains(':') && *line != text);
    std::iter::once(text).chain(line).collect()
}

fn texts_of(scene: &Scene) -> impl Iterator<Item = &str> {
    scene.marks.iter().filter_map(|mark| match mark {
        Mark::Text { text, .. } => Some(text.as_str()),
        _ => None,
    })
}

impl Grid {
    /// The names of groups within their areas, to be drawn over the cells in `plot`: each where its group is
    /// the highest, as far as it has room there, and no name lies over the names of `others` or repeats one
    /// of them.
    pub fn names(&self, groups: &Groups, plot: Rect, others: &Scene) -> Scene {
        let mut scene = Scene::new(0.0, 0.0);
        let mut taken: Vec<Rect> = others.marks.iter().map(|mark| mark.bounds().grown(2.0)).collect();
        let strips = self.strips(groups.legend().len(), |row| Some(groups.place(row)), plot);
        for (entry, strips) in groups.legend().iter().zip(strips) {
            // An allocation in the area may have the name of the group.
            let is_said = |name: &&str| texts_of(others).any(|other| other == *name);
            let names = shorter_names(&entry.text);
            if names.iter().any(is_said) {
                continue;
            }
            let sizes = || SIZES_PX.into_iter().flat_map(|size| names.iter().map(move |text| (size, *text)));
            let found = sizes().find_map(|(size_px, text)| {
                let width = text_width_px(text, size_px, Weight::Bold).ceil() + 8.0;
                let height = PLATE_PX - (TEXT_PX - size_px) * 2.0;
                Some((roomiest_place(&strips, width, height, &taken)?, size_px, text))
            });
            let Some((found, size_px, text)) = found else { continue };
            draw_plated_text(&mut scene, found.center(), text, size_px, Weight::Bold);
            taken.push(found.grown(2.0));
        }
        scene
    }

    /// The names of single allocations, placed as [`Grid::names`] places those of groups: `name_of` returns
    /// the name of a row, for the first `rows` rows.
    pub fn row_names<'a>(
        &self,
        rows: usize,
        name_of: impl Fn(usize) -> Option<&'a str>,
        plot: Rect,
    ) -> Scene {
        let mut scene = Scene::new(0.0, 0.0);
        let strips = self.strips(rows, |row| name_of(row).map(|_| row), plot);
        let mut taken: Vec<Rect> = Vec::new();
        for (row, strips) in strips.iter().enumerate() {
            let Some(name) = name_of(row) else { continue };
            let found = SIZES_PX.into_iter().find_map(|size_px| {
                let width = text_width_px(name, size_px, Weight::Bold).ceil() + 8.0;
                let height = PLATE_PX - (TEXT_PX - size_px) * 2.0;
                Some((roomiest_place(strips, width, height, &taken)?, size_px))
            });
            let Some((found, size_px)) = found else { continue };
            draw_plated_text(&mut scene, found.center(), name, size_px, Weight::Bold);
            taken.push(found.grown(2.0));
        }
        scene
    }

    /// For each number below `count`, the longest run of its cells in each column that is looked at;
    /// `number_of` returns the number of a row.
    fn strips(
        &self,
        count: usize,
        number_of: impl Fn(usize) -> Option<usize>,
        plot: Rect,
    ) -> Vec<Vec<AreaStrip>> {
        let (width, height) = self.size();
        let step = width.div_ceil(MAX_COLUMNS).max(1);
        let cell_px = (plot.width_px / count_px(width), plot.height_px / count_px(height));
        let mut strips: Vec<Vec<AreaStrip>> = vec![Vec::new(); count];
        for column in (0..width).step_by(step) {
            let mut longest = vec![(0, 0); strips.len()];
            let mut at = 0;
            while at < height {
                let group = self.number(&number_of, column, at);
                let from = at;
                while at < height && self.number(&number_of, column, at) == group {
                    at += 1;
                }
                let Some(group) = group else { continue };
                if let Some(kept) = longest.get_mut(group)
                    && at - from > kept.1 - kept.0
                {
                    *kept = (from, at);
                }
            }
            for (strips, (low, high)) in strips.iter_mut().zip(longest) {
                strips.push(AreaStrip {
                    left_px: plot.x_px + count_px(column) * cell_px.0,
                    right_px: plot.x_px + count_px((column + step).min(width)) * cell_px.0,
                    top_px: plot.bottom_px() - count_px(high) * cell_px.1,
                    foot_px: plot.bottom_px() - count_px(low) * cell_px.1,
                });
            }
        }
        strips
    }

    /// The number of the allocation that a cell shows; `None` for every other cell.
    fn number(
        &self,
        number_of: &impl Fn(usize) -> Option<usize>,
        column: usize,
        row: usize,
    ) -> Option<usize> {
        match self.cell(column, row) {
            Cell::Row(found) => number_of(found),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gets_shorter_by_whole_parts() {
        assert_eq!(shorter_names("train train.py:9"), ["train train.py:9", "train.py:9"]);
        assert_eq!(shorter_names("up to 10 MiB"), ["up to 10 MiB"]);
    }
}
