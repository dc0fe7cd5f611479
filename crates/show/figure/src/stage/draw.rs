//! The bar with its brackets and its ruler.

mod axis;
mod limit;

use std::collections::BTreeMap;

use blockyard_record::{Bytes, SegmentId};

use super::ruler::Ruler;
use super::{NARROW_PX, Stage, StageForm, StageView};
use crate::conversions::{bytes_f64, count_px};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect};
use crate::labels::baseline;
use crate::role::{BreakdownClass, Role};
use crate::scene::{Anchor, Dash, Scene, TargetId, TextStyle, Weight};
use crate::term::Term;
use crate::text_width::{first_fitting, text_width_px};

/// The lengths of a stage of some width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metrics {
    pub(super) width_px: f32,
    pub(super) text_px: f32,
    pub(super) numeral_px: f32,
    /// How many brackets are above the bar.
    tiers: f32,
    tier_px: f32,
    bar_px: f32,
    pub(super) ruler_px: f32,
    pub(super) peaks_px: f32,
    /// The height of the line with the names of narrow blocks; 0 without such a line.
    pub(super) leaders_px: f32,
    pub(super) segment_px: f32,
    pub(super) label_px: f32,
    /// The height of the row for an enlarged block; 0 without one.
    pub(super) enlarged_px: f32,
    /// The height of the row for a request that failed; 0 in a run without failures.
    pub(super) failure_px: f32,
}

impl Metrics {
    /// A process has no row for peaks.
    fn new(width_px: f32, has_failures: bool, is_process: bool, form: StageForm) -> Self {
        let width_px = if width_px.is_finite() { width_px.floor().clamp(40.0, 16384.0) } else { 40.0 };
        let scale = (width_px / 1300.0).clamp(1.0, 2.0);
        let is_projected = form == StageForm::Projected;
        let own_px = if is_projected { 16.0 } else { 13.0 };
        let text_px = if width_px < NARROW_PX { 12.0 } else { (own_px * scale).round() };
        let numeral_px = if width_px < NARROW_PX { 20.0 } else { (28.0 * scale).round() };
        let is_small = form == StageForm::Small;
        let peak_rows = if is_process || is_projected || is_small {
            0.0
        } else if width_px < NARROW_PX {
            2.0
        } else {
            1.0
        };
        let lines = |count: f32| (text_px * count).round();
        let by_form = |full: f32, compact: f32, small: f32| {
            lines(match form {
                StageForm::Full | StageForm::Projected => full,
                StageForm::Compact => compact,
                StageForm::Small => small,
            })
        };
        Self {
            width_px,
            text_px,
            numeral_px,
            tiers: if is_projected && !is_process { 2.0 } else { 3.0 },
            tier_px: by_form(2.05, 1.9, 1.85),
            bar_px: by_form(6.6, 4.6, 2.6),
            ruler_px: by_form(2.1, 2.1, 1.7),
            peaks_px: lines(1.45) * peak_rows,
            leaders_px: 0.0,
            segment_px: by_form(3.5, 2.8, 2.0),
            label_px: if is_projected { 4.0 } else { by_form(1.7, 1.7, 1.5) },
            enlarged_px: 0.0,
            failure_px: if has_failures { by_form(5.6, 5.6, 2.6) } else { 0.0 },
        }
    }

    fn bar_y_px(&self) -> f32 {
        self.tiers * self.tier_px + 2.0
    }

    pub(super) fn ruler_y_px(&self) -> f32 {
        self.bar_y_px() + self.bar_px + 6.0
    }

    pub(super) fn segments_y_px(&self) -> f32 {
        self.ruler_y_px() + self.ruler_px + self.peaks_px + self.leaders_px + 4.0
    }

    pub(super) fn labels_y_px(&self) -> f32 {
        self.segments_y_px() + self.segment_px
    }

    pub(super) fn enlarged_y_px(&self) -> f32 {
        self.labels_y_px() + self.label_px
    }

    pub(super) fn failure_y_px(&self) -> f32 {
        self.enlarged_y_px() + self.enlarged_px
    }

    /// The width of the non-PyTorch memory before the ruler, which is drawn as this number of blocks.
    fn non_pytorch_px(&self, blocks: usize) -> f32 {
        match blocks {
            0 => 0.0,
            more => (self.text_px * (7.5 + 6.5 * count_px(more - 1))).round(),
        }
    }

    fn height_px(&self) -> f32 {
        self.failure_y_px() + self.failure_px + 2.0
    }

    /// The lengths with a higher bar and higher segments, at most twice as high, so that the stage fills
    /// `height_px`.
    fn grown_to(self, height_px: f32) -> Self {
        let room_px = self.bar_px + self.segment_px;
        let more_px = (height_px.min(16384.0) - self.height_px()).clamp(0.0, room_px);
        let factor = 1.0 + more_px / room_px;
        // Lengths are whole pixels, so that edges are sharp, and rounded down, so that the stage is not
        // higher than its room.
        Self {
            bar_px: (self.bar_px * factor).floor(),
            segment_px: (self.segment_px * factor).floor(),
            ..self
        }
    }
}

/// The height that a stage takes at this width; it does not depend on the moment, so that nothing moves in
/// playing.
pub fn stage_height(width_px: f32, has_failures: bool, form: StageForm) -> f32 {
    Metrics::new(width_px, has_failures, false, form).height_px()
}

/// The height of a stage that shows a process ([`Stage::as_process`]), which has no row for peaks; see
/// [`stage_height`].
pub fn process_stage_height(width_px: f32, has_failures: bool, form: StageForm) -> f32 {
    Metrics::new(width_px, has_failures, true, form).height_px()
}

impl Stage {
    fn allocated_name(&self) -> &'static str {
        if self.is_at_peak { "allocated at the peak" } else { "allocated" }
    }

    /// The stage as marks. The scene is as high as [`stage_height`] says.
    pub fn scene(&self, view: &StageView, width_px: f32) -> Scene {
        let has_peaks = self.non_pytorch_bytes.is_none();
        let is_small = view.form == StageForm::Small;
        let mut metrics = Metrics::new(width_px, self.has_failures, !has_peaks, view.form);
        self.make_room_for_leaders(&mut metrics);
        let metrics = metrics.grown_to(view.least_height_px);
        let left_px = metrics.non_pytorch_px(self.non_pytorch_blocks(metrics.width_px, view.form).len());
        let ruler = Ruler { shown: self.shown, left_px, width_px: metrics.width_px };
        let mut scene = Scene::new(metrics.width_px, metrics.height_px());
        let mut painter = Painter {
            stage: self,
            view,
            metrics,
            ruler,
            scene: &mut scene,
            rects: BTreeMap::new(),
            free_below: None,
        };
        painter.place_segments();
        painter.draw_brackets();
        painter.draw_non_pytorch();
        painter.draw_bar();
        painter.draw_ruler();
        if has_peaks && !is_small && !painter.is_projected() {
            painter.draw_peaks();
        }
        painter.draw_segments();
        painter.draw_leaders();
        painter.draw_enlarged();
        painter.draw_failure();
        painter.draw_lit();
        scene
    }
}

/// The room that two slanted cuts take at the end of an area.
const CUTS_PX: f32 = 14.0;

/// A bracket above the bar, with a name and a number.
struct Bracket {
    name: &'static str,
    value: String,
    left_px: f32,
    /// The byte at which the bracket ends.
    to: f64,
    role: Role,
    term: Option<Term>,
}

impl Bracket {
    /// A bracket from the left edge.
    fn new(name: &'static str, value: String, to: f64, role: Role) -> Self {
        Self { name, value, left_px: 0.0, to, role, term: None }
    }
}

pub(super) struct Painter<'a> {
    pub(super) stage: &'a Stage,
    pub(super) view: &'a StageView,
    pub(super) metrics: Metrics,
    pub(super) ruler: Ruler,
    pub(super) scene: &'a mut Scene,
    /// The place of each segment, computed once, since a run may have thousands of blocks in hundreds of
    /// segments.
    pub(super) rects: BTreeMap<SegmentId, Rect>,
    /// The words for free bytes that have no room in the bar.
    pub(super) free_below: Option<String>,
}

impl Painter<'_> {
    /// Whether the stage has at most four labels.
    pub(super) fn is_projected(&self) -> bool {
        self.view.form == StageForm::Projected
    }

    /// Whether a projected stage names a class in the bar: cached bytes with room for it, or else free ones, unless
    /// the process or a failed request has the labels.
    fn has_projected_name(&self, class: BreakdownClass) -> bool {
        let Stage { numbers, non_pytorch_bytes, limit, failed, .. } = self.stage;
        let cached = bytes_f64(numbers.reserved.saturating_sub(numbers.allocated));
        let is_cached = self.ruler.span_px(cached) > self.metrics.text_px * 5.0;
        let named = if is_cached { BreakdownClass::Cached } else { BreakdownClass::Free };
        class == named && non_pytorch_bytes.is_none() && limit.is_none() && failed.is_none()
    }

    /// Three nested brackets, each on a separate line: allocated in reserved, and reserved in the device or
    /// in the memory that `nvidia-smi` shows for the process. A projected stage does without the device.
    fn draw_brackets(&mut self) {
        let Stage { numbers, non_pytorch_bytes, .. } = self.stage;
        let (allocated, reserved) = (self.stage.allocated(), self.stage.reserved());
        let outer = if let Some(non_pytorch) = non_pytorch_bytes {
            let value = non_pytorch.saturating_add(numbers.reserved).to_string();
            Bracket::new("nvidia-smi", value, reserved, Role::TextMuted)
        } else {
            let value = self.device_text(self.metrics.width_px - self.name_px("device"));
            Bracket::new("device", value, bytes_f64(self.stage.capacity), Role::TextMuted)
        };
        let bracket = |name, (number, peak), to, role, term| Bracket {
            left_px: self.ruler.left_px,
            term: Some(term),
            ..Bracket::new(name, self.with_peak(number, peak), to, role)
        };
        let brackets = [
            outer,
            bracket(
                "reserved",
                (numbers.reserved, numbers.max_reserved),
                reserved,
                Role::PeakReserved,
                Term::Reserved,
            ),
            bracket(
                self.stage.allocated_name(),
                (numbers.allocated, numbers.max_allocated),
                allocated,
                Role::PeakAllocated,
                Term::Allocated,
            ),
        ];
        let left_out = usize::from(self.metrics.tiers < 3.0);
        for (tier, bracket) in brackets.into_iter().skip(left_out).enumerate() {
            self.draw_bracket(count_px(tier) * self.metrics.tier_px, &bracket);
        }
    }

    /// The number of a bracket. A projected stage has no row for peaks, and a higher peak follows here.
    fn with_peak(&self, number: Bytes, peak: Bytes) -> String {
        let (number, peak) = (number.to_string(), peak.to_string());
        if self.is_projected() && peak != number { format!("{number}, peak {peak}") } else { number }
    }

    /// The room of a bracket's name and of the gap after it.
    fn name_px(&self, name: &str) -> f32 {
        let text_px = self.metrics.text_px;
        text_width_px(name, text_px, Weight::Bold) + text_px * 0.4
    }

    /// The capacity; where `room` pixels are enough, also whether the capacity is known, and which part of
    /// the device the ruler shows.
    fn device_text(&self, room: f32) -> String {
        let stage = self.stage;
        let mut value = stage.capacity.to_string();
        let mut longer = value.clone();
        if stage.is_capacity_unknown {
            value = format!("at least {value}");
            longer = format!("{value}: the file does not say more");
        } else if stage.is_enlarged() {
            longer = format!("{value}, of which this is the first {}", stage.shown);
        }
        if text_width_px(&longer, self.metrics.text_px, Weight::Normal) <= room { longer } else { value }
    }

    fn draw_bracket(&mut self, top: f32, bracket: &Bracket) {
        let Metrics { text_px, tier_px, width_px, .. } = self.metrics;
        let &Bracket { name, ref value, left_px, to, role, term } = bracket;
        let end = self.ruler.x_px(to);
        let name_width = self.name_px(name);
        let line_y = (top + tier_px - 7.0).round() + 0.5;
        let width = if term.is_some() && self.view.lit == term { 4.0 } else { 2.0 };
        if end >= left_px + 1.0 {
            let (left, right) = (left_px + 1.0, (end - 1.0).max(left_px + 1.0));
            let line = (Point::new(left_px, line_y), Point::new(right + 1.0, line_y));
            self.scene.add_line(line.0, line.1, role, Dash::Solid, width);
            self.scene.add_line(
                Point::new(left, line_y),
                Point::new(left, line_y + 6.0),
                role,
                Dash::Solid,
                2.0,
            );
            // Beyond a ruler that shows only the first part of the device, the device goes on: no foot ends
            // the bracket.
            if to <= bytes_f64(self.stage.shown) {
                let foot = (Point::new(right, line_y), Point::new(right, line_y + 6.0));
                self.scene.add_line(foot.0, foot.1, role, Dash::Solid, 2.0);
            }
        }
        let whole = name_width + text_width_px(value, text_px, Weight::Normal);
        let left = (left_px.midpoint(end) - whole / 2.0).min(width_px - whole).max(left_px).round();
        let y = (line_y - text_px * 0.45).round();
        self.scene.add_text(Point::new(left, y), name, TextStyle::new(role, text_px).bold());
        self.scene.add_text(
            Point::new(left + name_width, y),
            value.clone(),
            TextStyle::new(Role::Text, text_px),
        );
        if let Some(term) = term {
            let rect = Rect::new(left_px, top, end.max(left + whole) - left_px, tier_px);
            self.scene.add_target(rect, TargetId::Term(term));
        }
    }

    /// The non-PyTorch memory of the process, a block for each part. Two slanted cuts before the ruler say
    /// that the widths are not to scale.
    fn draw_non_pytorch(&mut self) {
        let stage = self.stage;
        let Metrics { text_px, bar_px, width_px, .. } = self.metrics;
        let y = self.metrics.bar_y_px();
        let blocks = stage.non_pytorch_blocks(width_px, self.view.form);
        let has_texts = !self.is_projected() || stage.failed.is_none();
        let mut right = 0.0;
        for (index, (name, bytes)) in blocks.iter().enumerate() {
            let left = right;
            right = self.metrics.non_pytorch_px(index + 1);
            let rect = Rect::new(left, y, right - left - 2.0, bar_px);
            self.scene.add_rounded(rect, Fill { role: Role::Pending, pattern: Pattern::Tint }, 4.0);
            let is_last = index + 1 == blocks.len();
            if is_last {
                self.draw_cuts(&rect);
            }
            let cut_px = if is_last { CUTS_PX } else { 0.0 };
            let room = rect.width_px - cut_px - 8.0;
            let words = if *name == "context" { ["CUDA context", *name] } else { [*name; 2] };
            let value = [bytes.to_string()];
            let lines = [
                (first_fitting(&words, text_px, Weight::Normal, room), -text_px * 0.65, Weight::Normal),
                (first_fitting(&value, text_px, Weight::Bold, room), text_px * 0.65, Weight::Bold),
            ];
            for (text, below, weight) in lines {
                let Some(text) = text.filter(|_| has_texts) else { continue };
                let style = TextStyle { weight, ..TextStyle::new(Role::Text, text_px) };
                let middle = left.midpoint(rect.right_px() - cut_px);
                let at = Point::new(middle, baseline(rect.center().y_px + below, text_px));
                self.scene.add_text(at, text, style.anchored(Anchor::Middle));
            }
        }
    }

    /// Two slanted cuts near the right end of an area: its width is not to scale.
    fn draw_cuts(&mut self, rect: &Rect) {
        for place in [CUTS_PX, CUTS_PX - 6.0] {
            let end = rect.right_px() - place;
            let (top, bottom) = (Point::new(end + 6.0, rect.y_px), Point::new(end, rect.bottom_px()));
            self.scene.add_line(top, bottom, Role::Background, Dash::Solid, 3.0);
        }
    }

    fn draw_bar(&mut self) {
        let Metrics { bar_px, text_px, .. } = self.metrics;
        let y = self.metrics.bar_y_px();
        let mut at = 0.0;
        let mut unnamed = None;
        let mut before = None;
        let Stage { classes, numbers, .. } = self.stage;
        for ((class, bytes), number) in BreakdownClass::ALL.into_iter().zip(*classes).zip(numbers.classes) {
            let (left, right) = (self.ruler.x_px(at).round(), self.ruler.x_px(at + bytes).round());
            at += bytes;
            if bytes <= 0.0 {
                continue;
            }
            if class == BreakdownClass::Free && self.draw_free_within_limit(at - bytes, number, before) {
                continue;
            }
            // A class with any bytes is visible, however small.
            let rect = Rect::new(left, y, (right - left).max(1.0), bar_px);
            let gap = if rect.width_px > 6.0 { 1.0 } else { 0.0 };
            let inner = Rect::new(rect.x_px + gap, y, rect.width_px - 2.0 * gap, bar_px);
            self.scene.add_rounded(inner, Fill::of(class), 4.0);
            self.scene.add_target(rect, TargetId::Class(class));
            // The area goes on beyond a ruler that shows only the first part of the device.
            let mut inner = inner;
            if at > bytes_f64(self.stage.shown) && inner.width_px > 3.0 * CUTS_PX {
                self.draw_cuts(&inner);
                inner.width_px -= CUTS_PX;
            }
            // A class that shrinks to nothing between two moments has no number any more.
            if number.is_zero() {
                continue;
            }
            let used_px = self.draw_class_text(class, number, &self.class_texts(class, number), &inner);
            if class == BreakdownClass::Free && used_px <= 0.0 {
                self.draw_free_before(number, before);
            }
            // A sliver has no room for the words of the next area.
            if inner.width_px > text_px * 2.0 {
                before = Some((inner, used_px));
            }
            if class == BreakdownClass::Rounding {
                // Between two moments the area may be narrower than at the next moment.
                let is_narrow = self.ruler.span_px(bytes_f64(number)) < self.metrics.text_px * 5.0;
                unnamed = Some(number).filter(|_| used_px <= 0.0 && is_narrow);
            } else if let Some(rounding) = unnamed.take() {
                self.draw_rounding_text(rounding, class, &inner, used_px);
            }
        }
    }

    /// Rounding that is too narrow for its words has them in the corner of the next `area`, which belongs to
    /// `class`, if they fit beside the words of that area, which take `used_px`.
    fn draw_rounding_text(&mut self, bytes: Bytes, class: BreakdownClass, area: &Rect, used_px: f32) {
        let text_px = self.metrics.text_px;
        let room = if self.is_projected() { 0.0 } else { (area.width_px - used_px) / 2.0 - 12.0 };
        let words = [format!("rounding {bytes}")];
        let Some(words) = first_fitting(&words, text_px, Weight::Normal, room) else { return };
        let style = TextStyle::new(Role::Text, text_px);
        self.put(Point::new(area.x_px + 4.0, area.y_px + text_px * 1.25), words, style, class);
    }

    /// Free bytes that are too narrow for their words have them at the end of the area before, if they fit
    /// beside the words of that area, which take these pixels, or else below, beside the segments.
    fn draw_free_before(&mut self, bytes: Bytes, before: Option<(Rect, f32)>) {
        let text_px = self.metrics.text_px;
        let Some((area, used_px)) = before.filter(|_| !self.is_projected()) else { return };
        let (words, room) = (format!("{bytes} free"), (area.width_px - used_px) / 2.0 - 14.0);
        let width = text_width_px(&words, text_px, Weight::Normal);
        if width <= room {
            let at = Point::new(area.right_px() - width - 6.0, baseline(area.center().y_px, text_px));
            self.put(at, &words, TextStyle::new(Role::Text, text_px), BreakdownClass::Free);
        } else {
            self.free_below = Some(words);
        }
    }

    /// The words for a class in the bar, and a shorter form.
    fn class_texts(&self, class: BreakdownClass, bytes: Bytes) -> [String; 2] {
        // If the bracket above has the same digits, the class has the bracket's name.
        let is_pure = class == BreakdownClass::Requested
            && self.stage.numbers.allocated.to_string() == bytes.to_string();
        let word = match class {
            _ if is_pure => "allocated",
            BreakdownClass::Free if self.stage.is_capacity_unknown => "free on the device, at least",
            BreakdownClass::Free if self.stage.is_enlarged() => "free on the device, in all",
            BreakdownClass::Free => "free on the device",
            other => other.name(),
        };
        [word, if is_pure { word } else { class.name() }].map(str::to_owned)
    }

    /// Writes the class and its bytes in the largest size that fits. Returns the width of the text in pixels.
    fn draw_class_text(&mut self, class: BreakdownClass, bytes: Bytes, words: &[String], rect: &Rect) -> f32 {
        let Metrics { text_px, numeral_px, .. } = self.metrics;
        if self.is_projected() && !self.has_projected_name(class) {
            return 0.0;
        }
        let mut value = bytes.to_string();
        let room = rect.width_px - 12.0;
        let mut sizes = [numeral_px, (numeral_px * 0.72).round(), text_px + 1.0, text_px];
        // A low bar has room for a line, or for two lines without room around them.
        let (mut is_one_line, mut lines) = (false, 1.7);
        if self.view.form == StageForm::Small {
            (sizes, lines) = ([text_px; 4], 1.25);
            let longer = format!("{value} {}", words.last().map_or("", String::as_str));
            if text_width_px(&longer, text_px, Weight::Bold) <= room {
                (value, is_one_line) = (longer, true);
            }
        }
        let mut word = first_fitting(words, text_px, Weight::Normal, room);
        let fits = |size: f32| text_width_px(&value, size, Weight::Bold) <= room;
        let size = sizes.into_iter().find(|size| fits(*size)).unwrap_or_else(|| {
            // A narrow area has its name alone.
            word.take().unwrap_or_default().clone_into(&mut value);
            text_px
        });
        if value.is_empty() {
            return 0.0;
        }
        word = word.filter(|_| !is_one_line && rect.height_px >= text_px * lines + size);
        let Point { x_px, y_px } = rect.center();
        let role = if class == BreakdownClass::Requested { Role::TextOnRequested } else { Role::Text };
        let is_plain = matches!(Fill::of(class).pattern, Pattern::Solid | Pattern::Faint | Pattern::Tint);
        let value_y = if word.is_some() { y_px + text_px * 0.65 } else { y_px };
        let lines = [
            (word.map(str::to_owned), y_px - size * 0.62, text_px, Weight::Normal),
            (Some(value), value_y, size, Weight::Bold),
        ];
        let mut used_px: f32 = 0.0;
        for (text, y, size_px, weight) in lines {
            let Some(text) = text else { continue };
            used_px = used_px.max(text_width_px(&text, size_px, weight));
            if !is_plain {
                let width = text_width_px(&text, size_px, weight).ceil() + 6.0;
                let (left, top) = ((x_px - width / 2.0).round(), (y - size_px * 0.62).round());
                self.draw_plate(Rect::new(left, top, width, (size_px * 1.3).round()), class);
            }
            let style = TextStyle { weight, ..TextStyle::new(role, size_px) };
            self.scene.add_text(Point::new(x_px, baseline(y, size_px)), text, style.anchored(Anchor::Middle));
        }
        used_px
    }

    /// Frames around the bytes of the term that is lit.
    fn draw_lit(&mut self) {
        let Some(term) = self.view.lit else { return };
        let (y, height) = (self.metrics.bar_y_px(), self.metrics.bar_px);
        let frame = |painter: &mut Self, from: f64, to: f64| {
            let (left, right) = (painter.ruler.x_px(from).round(), painter.ruler.x_px(to).round());
            if to > from {
                let rect = Rect::new(left, y, (right - left).max(2.0), height);
                painter.scene.add_frame(rect, Role::Selection, Dash::Solid, 3.0);
            }
        };
        let peak = match term {
            Term::MaxAllocated => Some(self.stage.max_allocated),
            Term::MaxReserved => Some(self.stage.max_reserved),
            _ => None,
        };
        if let Some(peak) = peak {
            return frame(self, 0.0, peak);
        }
        let (first, last) = term.classes();
        let place = |class| BreakdownClass::ALL.iter().position(|other| *other == class).unwrap_or(0);
        let from: f64 = self.stage.classes[..place(first)].iter().sum();
        let to: f64 = self.stage.classes[..=place(last)].iter().sum();
        frame(self, from, to.min(bytes_f64(self.stage.shown)));
        self.draw_lit_segments(term);
    }
}
