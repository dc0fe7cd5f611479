//! The peaks and the limit, as marks below the ruler with their numbers.

use super::NARROW_PX;
use super::draw::Painter;
use crate::conversions::{bytes_f64, count_px};
use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::role::Role;
use crate::scene::{Mark, TargetId, TextStyle, Weight};
use crate::text_width::text_width_px;

/// The distance between two texts on a line.
const GAP_PX: f32 = 12.0;
/// A text is at its mark where it is this near.
const NEAR_PX: f32 = 6.0;
/// The room of a mark before a text that is not at its mark.
const SIGN_PX: f32 = 14.0;

/// A mark below the ruler with its text.
struct PeakMark {
    x_px: f32,
    text: String,
    width_px: f32,
    role: Role,
    target: TargetId,
}

impl Painter<'_> {
    /// The peaks and the limit, below the ruler.
    pub(super) fn draw_peaks(&mut self) {
        let super::draw::Metrics { text_px, width_px, peaks_px, ruler_px, .. } = self.metrics;
        let stage = self.stage;
        let mark = |bytes: f64, text: String, role: Role, target: TargetId| PeakMark {
            x_px: self.ruler.x_px(bytes).round().clamp(5.0, (width_px - 5.0).max(5.0)),
            width_px: text_width_px(&text, text_px, Weight::Normal).ceil(),
            text,
            role,
            target,
        };
        let mut marks = Vec::new();
        for (name, at, bytes, role, target) in [
            (
                "peak allocated so far",
                stage.max_allocated,
                stage.numbers.max_allocated,
                Role::PeakAllocated,
                TargetId::PeakAllocated,
            ),
            (
                "peak reserved so far",
                stage.max_reserved,
                stage.numbers.max_reserved,
                Role::PeakReserved,
                TargetId::PeakReserved,
            ),
        ] {
            if at >= 1.0 {
                // A peak that shrinks to nothing between two moments has no number any more.
                let text = if bytes.is_zero() { String::new() } else { format!("{name} {bytes}") };
                marks.push(mark(at, text, role, target));
            }
        }
        if let Some(limit) = stage.limit.filter(|limit| limit.highest < stage.shown) {
            // The limit is named once: above the bar where there is room.
            let is_named = self.limit_name_at().is_some();
            let text = if is_named { String::new() } else { format!("limit {}", limit.range_text()) };
            marks.push(mark(bytes_f64(limit.highest), text, Role::Limit, TargetId::Limit));
        }
        let ruler_y = self.metrics.ruler_y_px();
        for mark in &marks {
            let (x, y) = (mark.x_px, ruler_y);
            self.draw_tip(Point::new(x, y - 1.0), mark.role);
            self.scene.add_target(Rect::new(x - 6.0, y - 2.0, 12.0, 12.0), mark.target);
        }
        let rows: usize = if width_px < NARROW_PX { 2 } else { 1 };
        let line = peaks_px / count_px(rows);
        let top = ruler_y + ruler_px;
        // A mark without a text takes no room.
        marks.retain(|mark| !mark.text.is_empty());
        for (mark, place) in marks.iter().zip(places(&marks, width_px, rows)) {
            let Some(place) = place else { continue };
            let y = (top + count_px(place.row) * line + text_px).round();
            let mut left = place.left_px;
            if place.has_sign {
                self.draw_tip(Point::new(left + 5.0, y - text_px * 0.7), mark.role);
                left += SIGN_PX;
            }
            self.scene.add_text(Point::new(left, y), mark.text.clone(), TextStyle::new(mark.role, text_px));
            let rect =
                Rect::new(place.left_px, y - text_px, left + mark.width_px - place.left_px, text_px * 1.3);
            self.scene.add_target(rect, mark.target);
        }
    }

    /// A triangle that points up to `tip`.
    fn draw_tip(&mut self, tip: Point, role: Role) {
        let foot = tip.y_px + 8.0;
        let points = vec![tip, Point::new(tip.x_px + 5.0, foot), Point::new(tip.x_px - 5.0, foot)];
        self.scene.marks.push(Mark::Area { points, fill: Fill::solid(role) });
    }
}

/// Where the text of a mark begins, and in which line. A text that is not at its mark has a copy of the mark
/// before it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MarkPlace {
    row: usize,
    left_px: f32,
    has_sign: bool,
}

/// A place for each text: at its mark wherever that is possible. On one line the last mark has no place if
/// there is no room for its text.
fn places(marks: &[PeakMark], width_px: f32, rows: usize) -> Vec<Option<MarkPlace>> {
    if rows > 1 {
        let place = |(row, mark): (usize, &PeakMark)| {
            let left_px = (mark.x_px - mark.width_px / 2.0).min(width_px - mark.width_px).max(0.0).round();
            (row < rows).then_some(MarkPlace { row, left_px, has_sign: false })
        };
        return marks.iter().enumerate().map(place).collect();
    }
    for count in (1..=marks.len()).rev() {
        let Some(lefts) = lefts_at_marks(marks.get(..count).unwrap_or_default(), width_px) else {
            // The peaks may have room if the limit, whose line and area show it, has no text here.
            if count <= 2 {
                break;
            }
            continue;
        };
        let place = |left_px: f32| Some(MarkPlace { row: 0, left_px, has_sign: false });
        let rest = std::iter::repeat_n(None, marks.len() - count);
        return lefts.into_iter().map(place).chain(rest).collect();
    }
    side_by_side(marks, width_px)
}

/// Where each text begins so that it is at its mark and apart from the others; `None` where that is
/// impossible.
fn lefts_at_marks(marks: &[PeakMark], width_px: f32) -> Option<Vec<f32>> {
    let mut order: Vec<usize> = (0..marks.len()).collect();
    order.sort_by(|one, other| {
        let x = |at: &usize| marks.get(*at).map_or(0.0, |mark| mark.x_px);
        x(one).total_cmp(&x(other))
    });
    let ordered: Vec<&PeakMark> = order.iter().filter_map(|at| marks.get(*at)).collect();
    let range = |mark: &PeakMark| {
        let most = (width_px - mark.width_px).max(0.0);
        let from = (mark.x_px - mark.width_px - NEAR_PX).clamp(0.0, most);
        (from, (mark.x_px + NEAR_PX).clamp(0.0, most))
    };
    // Computed from the right: the last place of each text at which the texts after it can still be at their
    // marks.
    let mut last = vec![0.0; ordered.len()];
    let mut next = f32::MAX;
    for (mark, last) in ordered.iter().zip(&mut last).rev() {
        *last = range(mark).1.min(next - GAP_PX - mark.width_px);
        next = *last;
    }
    let mut lefts = vec![0.0; marks.len()];
    let mut free_from = 0.0_f32;
    for ((mark, last), place) in ordered.iter().zip(last).zip(order) {
        let first = range(mark).0.max(free_from);
        if first > last {
            return None;
        }
        let left = (mark.x_px - mark.width_px / 2.0).clamp(first, last).round();
        free_from = left + mark.width_px + GAP_PX;
        *lefts.get_mut(place)? = left;
    }
    Some(lefts)
}

/// The texts of both peaks beside each other near their marks, each with its mark once more before it; the
/// first is left out where there is no room for both.
fn side_by_side(marks: &[PeakMark], width_px: f32) -> Vec<Option<MarkPlace>> {
    let wide = |mark: &PeakMark| mark.width_px + SIGN_PX;
    let peaks = marks.get(..marks.len().min(2)).unwrap_or_default();
    let whole: f32 = peaks.iter().map(wide).sum::<f32>() + GAP_PX;
    let middle = peaks.iter().map(|mark| mark.x_px).sum::<f32>() / count_px(peaks.len().max(1));
    let shown_from = if whole <= width_px { 0 } else { peaks.len().saturating_sub(1) };
    let shown = peaks.get(shown_from..).unwrap_or_default();
    let used = shown.iter().map(wide).sum::<f32>() + if shown.len() > 1 { GAP_PX } else { 0.0 };
    let mut left = (middle - used / 2.0).min(width_px - used).max(0.0).round();
    let mut places = vec![None; marks.len()];
    for (mark, place) in shown.iter().zip(places.iter_mut().skip(shown_from)) {
        *place = Some(MarkPlace { row: 0, left_px: left, has_sign: true });
        left += wide(mark) + GAP_PX;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(x_px: f32, width_px: f32) -> PeakMark {
        PeakMark { x_px, text: "text".to_owned(), width_px, role: Role::Text, target: TargetId::Limit }
    }

    /// How far a text is from its mark.
    fn off(mark: &PeakMark, place: MarkPlace) -> f32 {
        (place.left_px - mark.x_px).max(mark.x_px - place.left_px - mark.width_px).max(0.0)
    }

    #[test]
    fn a_text_is_at_its_mark_or_has_the_mark_before_it() {
        let mut at_marks = 0;
        for first in (5..895_u16).step_by(13) {
            for second in (first..895).step_by(29) {
                for limit in [None, Some(second.saturating_add(60).min(895))] {
                    let mut marks = vec![mark(f32::from(first), 150.0), mark(f32::from(second), 140.0)];
                    marks.extend(limit.map(|limit| mark(f32::from(limit), 170.0)));
                    let found = places(&marks, 900.0, 1);
                    assert!(found.iter().take(2).all(Option::is_some), "{first} {second}");
                    let mut ends: Vec<(f32, f32)> = Vec::new();
                    for (mark, place) in marks.iter().zip(found) {
                        let Some(place) = place else { continue };
                        assert!(
                            place.has_sign || off(mark, place) <= NEAR_PX + 1.0,
                            "{first} {second} {place:?}"
                        );
                        at_marks += u32::from(!place.has_sign);
                        let wide = mark.width_px + if place.has_sign { SIGN_PX } else { 0.0 };
                        ends.push((place.left_px, place.left_px + wide));
                    }
                    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
                    assert!(ends.windows(2).all(|pair| pair[0].1 + GAP_PX - 1.5 <= pair[1].0), "{ends:?}");
                    assert!(ends.iter().all(|(left, right)| *left >= 0.0 && *right <= 900.5), "{ends:?}");
                }
            }
        }
        assert!(at_marks > 1000);
    }

    #[test]
    fn on_two_lines_each_text_is_at_its_mark() {
        let marks = [mark(20.0, 150.0), mark(24.0, 140.0)];
        for (mark, place) in marks.iter().zip(places(&marks, 340.0, 2)) {
            assert!(off(mark, place.unwrap()) <= 1.0);
        }
    }
}
