//! The axis of bytes, with its ticks.

use blockyard_record::{Bytes, Recording, grouped};

use crate::conversions::{ByteUnit, bytes_f64, count_f64, floor_count, micros_f64, px};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect};
use crate::role::Role;
use crate::scene::{Anchor, Scene, TextStyle, Weight};
use crate::text_width::text_width_px;
use crate::timeline::clock::Clock;
use crate::timeline::view::{AXIS_ROW_PX, TimelineView, XScale};

pub(super) const TEXT_PX: f32 = 11.0;

/// The vertical scale of a plot, from bytes to pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct YScale {
    pub(super) low: Bytes,
    pub(super) top: Bytes,
    pub(super) plot: Rect,
}

impl YScale {
    pub(super) fn new(top: Bytes, plot: Rect) -> Self {
        Self { low: Bytes::ZERO, top: top.max(Bytes::new(1)), plot }
    }

    /// The height of a number of bytes, not rounded to whole pixels: a thin class keeps its share, and
    /// neighbors meet exactly.
    pub(super) fn y_px(&self, bytes: Bytes) -> f32 {
        let low = bytes_f64(self.low);
        let share = ((bytes_f64(bytes) - low) / (bytes_f64(self.top) - low).max(1.0)).clamp(0.0, 1.0);
        self.plot.bottom_px() - px(share) * self.plot.height_px
    }

    pub(super) fn holds(&self, bytes: Bytes) -> bool {
        self.low <= bytes && bytes <= self.top
    }
}

/// The distance of ticks: a power of two, so that the labels are round in binary units.
pub(crate) fn tick_step(top: Bytes, most: u64) -> Bytes {
    let mut step = 1_u64;
    while top.get().checked_div(step).is_some_and(|ticks| ticks > most.max(1)) && step < 1 << 62 {
        step <<= 1;
    }
    Bytes::new(step)
}

/// The least distance of two ticks of the vertical axis.
const MIN_TICK_PX: f32 = 15.0;

/// The ticks of an axis of bytes from zero to its top: round in binary units, four to six of them where there
/// is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteTicks {
    top: u64,
    /// The distance of two ticks, as a power of two.
    step_log: u32,
}

impl ByteTicks {
    pub(super) fn new(top: Bytes, height_px: f32) -> Self {
        let top = top.get().max(1);
        let room = u64::try_from(floor_count(f64::from(height_px / MIN_TICK_PX))).unwrap_or(1).max(1);
        // The largest power of two that fits at least three times.
        let least = (top / 3).max(1).ilog2();
        let step_log = (least..62).find(|log| top >> log <= room).unwrap_or(62);
        Self { top, step_log }
    }

    fn step(&self) -> u64 {
        1 << self.step_log
    }

    fn count(&self) -> u64 {
        self.top >> self.step_log
    }

    /// The unit of all numbers.
    pub(super) fn unit(&self) -> ByteUnit {
        let step = Bytes::new(self.step());
        ByteUnit::of_ticks(step, Bytes::new(self.step().saturating_mul(self.count())))
    }

    /// The bytes of each tick, and its number in the unit of the axis.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Bytes, String)> + '_ {
        let (unit, step) = (self.unit(), Bytes::new(self.step()));
        (0..=self.count()).map(move |index| {
            let tick = Bytes::new(self.step().saturating_mul(index));
            (tick, unit.tick(tick, step))
        })
    }
}

/// The numbers of the vertical axis, with their unit once at its head, and lines across the plot.
pub(super) fn draw_y_axis(scene: &mut Scene, scale: &YScale, plot: &Rect) {
    let ticks = ByteTicks::new(scale.top, scale.plot.height_px);
    let style = TextStyle::new(Role::TextMuted, TEXT_PX).anchored(Anchor::End);
    for (tick, text) in ticks.iter() {
        let y = scale.y_px(tick).round() - 0.5;
        scene.add_hairline(Point::new(plot.x_px - 4.0, y), Point::new(plot.right_px(), y), Role::Grid);
        scene.add_text(Point::new(plot.x_px - 7.0, y + 4.0), text, style);
    }
    scene.add_text(Point::new(plot.x_px - 7.0, plot.y_px - 9.0), ticks.unit().name(), style);
}

/// The upper edges of the lines of the vertical axis but for the lowest, which are a pixel high.
pub(super) fn grid_lines_px(scale: &YScale) -> impl Iterator<Item = f32> {
    let ticks: Vec<(Bytes, String)> =
        ByteTicks::new(scale.top, scale.plot.height_px).iter().skip(1).collect();
    let scale = *scale;
    ticks.into_iter().map(move |(tick, _)| scale.y_px(tick).round() - 1.0)
}

/// Draws the lines of the vertical axis again, fine, over the content of the plot.
pub(super) fn draw_grid_over(scene: &mut Scene, scale: &YScale, plot: &Rect) {
    let fill = Fill { role: Role::Grid, pattern: Pattern::Tint };
    for y in grid_lines_px(scale) {
        scene.add_rect(Rect::new(plot.x_px, y, plot.width_px, 1.0), fill, None);
    }
}

/// A distance of 1, 2 or 5 times a power of ten that is at least `least`.
fn step_distance(least: f64) -> usize {
    let mut power = 1_usize;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if count_f64(step) >= least || step > usize::MAX / 100 {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The distance of ticks of a time axis, in microseconds: a distance as [`step_distance`] has it, and from 20
/// s on one that is round in minutes and hours.
fn time_distance(least: f64) -> usize {
    const SECOND: usize = 1_000_000;
    let minutes = [20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18_000, 36_000];
    if least <= count_f64(10 * SECOND) {
        return step_distance(least);
    }
    let round = minutes.into_iter().map(|seconds| seconds * SECOND).find(|step| count_f64(*step) >= least);
    round.unwrap_or_else(|| step_distance(least))
}

/// How many microseconds after the first step the `steps`th step happened; `None` where times are not known.
fn elapsed(recording: &Recording, steps: usize) -> Option<u64> {
    let first = recording.time_us(0)?;
    Some(recording.time_us(steps.saturating_sub(1))?.saturating_sub(first))
}

/// A time span for people.
pub(crate) fn duration(micros: u64) -> String {
    time_text(micros, u64::MAX)
}

/// A time with as many digits as distinguish it from a time `distance` microseconds away, and at least the
/// digits of [`duration`].
fn time_text(micros: u64, distance: u64) -> String {
    let (unit, name, least_digits) = match micros {
        0..1_000 => return format!("{micros} µs"),
        1_000..1_000_000 => (1_000, "ms", 1),
        1_000_000..120_000_000 => (1_000_000, "s", 2),
        _ => (60_000_000, "min", 1),
    };
    let tells_apart = |digits: &usize| {
        let smallest = (0..*digits).fold(unit, |rest: u64, _| rest / 10);
        smallest <= distance.max(1)
    };
    let digits = (least_digits..9_usize).find(tells_apart).unwrap_or(9);
    format!("{:.digits$} {name}", micros_f64(micros) / micros_f64(unit))
}

/// The axes below a plot of moments: the requests, and below these the time since the first at each, where
/// times are known and there is room; on an axis of time, the requests are the second axis. Each axis has its
/// name, and `name` is that of the requests.
pub(super) fn draw_axes_of_moments(
    scene: &mut Scene,
    (recording, name): (&Recording, &str),
    scale: &XScale,
    view: &TimelineView,
    plot: &Rect,
    has_second: bool,
) {
    if let Some(clock) = scale.clock() {
        let ticks = clock_ticks(clock, view, plot);
        draw_axis(scene, "time", &ticks, plot);
        let requests = ticks.iter().map(|tick| Tick { text: grouped(tick.value), ..*tick });
        draw_second_axis(scene, name, requests.collect(), plot, has_second);
        return;
    }
    let times = if has_second { Some(recording).filter(|it| it.time_us(0).is_some()) } else { None };
    let ticks = step_ticks(scale, view, plot, times);
    draw_axis(scene, name, &ticks, plot);
    if let Some(recording) = times {
        draw_second_axis(scene, "time", times_of(recording, &ticks), plot, true);
    }
}

/// The times of the ticks after the first step, each with as many digits as distinguish it from its neighbors.
fn times_of(recording: &Recording, ticks: &[Tick]) -> Vec<Tick> {
    let ticks = ticks.iter().filter(|tick| tick.value > 0);
    let times: Vec<(&Tick, u64)> =
        ticks.filter_map(|tick| Some((tick, elapsed(recording, tick.value)?))).collect();
    let distances = times.windows(2).filter_map(|pair| match pair {
        [(_, one), (_, other)] => Some(one.abs_diff(*other)).filter(|distance| *distance > 0),
        _ => None,
    });
    let distance = distances.min().unwrap_or(u64::MAX);
    times.into_iter().map(|(tick, time)| Tick { text: time_text(time, distance), ..*tick }).collect()
}

/// The axis of requests, or of the time on a scale of time.
pub(crate) fn draw_x_axis(scene: &mut Scene, scale: &XScale, view: &TimelineView, plot: &Rect) {
    match scale.clock() {
        Some(clock) => draw_axis(scene, "time", &clock_ticks(clock, view, plot), plot),
        None => draw_axis(scene, "requests", &step_ticks(scale, view, plot, None), plot),
    }
}

/// A line with ticks, and the name of the axis left of the first, where the cursor's number never comes.
fn draw_axis(scene: &mut Scene, name: &str, ticks: &[Tick], plot: &Rect) {
    let bottom = plot.bottom_px().round() + 0.5;
    scene.add_hairline(Point::new(plot.x_px, bottom), Point::new(plot.right_px(), bottom), Role::TextMuted);
    for tick in ticks {
        let x_line = tick.x_px.floor() + 0.5;
        scene.add_hairline(Point::new(x_line, bottom), Point::new(x_line, bottom + 4.0), Role::TextMuted);
    }
    draw_row(scene, name, ticks, bottom + 15.0, plot);
}

/// The texts of a second axis below the first, at the same ticks. A text that would lie over the text before,
/// or that says the same, is left out.
fn draw_second_axis(scene: &mut Scene, name: &str, mut ticks: Vec<Tick>, plot: &Rect, has_room: bool) {
    ticks.retain(|tick| tick.is_within(plot));
    let mut before: Option<(f32, String)> = None;
    ticks.retain(|tick| {
        let (left, right) = (tick.x_px - tick.half_width_px(), tick.x_px + tick.half_width_px());
        let is_free = before.as_ref().is_none_or(|(end, text)| left >= *end + 6.0 && *text != tick.text);
        if is_free {
            before = Some((right, tick.text.clone()));
        }
        is_free
    });
    if has_room && !ticks.is_empty() {
        draw_row(scene, name, &ticks, plot.bottom_px().round() + 15.5 + AXIS_ROW_PX, plot);
    }
}

fn draw_row(scene: &mut Scene, name: &str, ticks: &[Tick], y_px: f32, plot: &Rect) {
    let style = TextStyle::new(Role::TextMuted, TEXT_PX);
    scene.add_text(Point::new(plot.x_px - 12.0, y_px), name, style.anchored(Anchor::End));
    for Tick { x_px, text, .. } in ticks {
        scene.add_text(Point::new(*x_px, y_px), text.clone(), style.anchored(Anchor::Middle));
    }
}

/// A tick of a horizontal axis.
pub(super) struct Tick {
    /// The place of the tick's line, which is also the middle of its text.
    pub(super) x_px: f32,
    pub(super) text: String,
    /// How many steps are complete at the tick.
    value: usize,
}

impl Tick {
    pub(super) fn half_width_px(&self) -> f32 {
        text_width_px(&self.text, TEXT_PX, Weight::Normal) / 2.0
    }

    /// Whether the text is beside the name of the axis, and within the figure.
    fn is_within(&self, plot: &Rect) -> bool {
        self.x_px - self.half_width_px() >= plot.x_px - 8.0
            && self.x_px + self.half_width_px() <= plot.right_px() + 8.0
    }
}

/// The ticks of the axis of steps; if `times` are written below them, the ticks are as far apart as the texts
/// of the times need.
pub(super) fn step_ticks(
    scale: &XScale,
    view: &TimelineView,
    plot: &Rect,
    times: Option<&Recording>,
) -> Vec<Tick> {
    let last = floor_count(view.last_step).min(times.map_or(usize::MAX, Recording::step_count));
    let time = times.and_then(|recording| elapsed(recording, last)).map(duration).unwrap_or_default();
    let width = |text: &str| text_width_px(text, TEXT_PX, Weight::Normal);
    let widest = width(&grouped(last)).max(width(&time));
    let step = step_distance(f64::from(widest + 28.0) / scale.step_px());
    let mut ticks = Vec::new();
    // The tick of `k` steps is where the `k`th step ends, as the cursor's line is.
    let mut tick = floor_count((view.first_step - 1.0).max(0.0)).div_ceil(step).saturating_mul(step);
    while count_f64(tick) + 1.0 <= view.last_step {
        let x_px = scale.x_px(count_f64(tick) + 1.0);
        ticks.push(Tick { x_px, text: grouped(tick), value: tick });
        match tick.checked_add(step) {
            Some(next) => tick = next,
            None => break,
        }
    }
    ticks.retain(|tick| tick.is_within(plot));
    ticks
}

/// The ticks of the axis of a clock.
pub(super) fn clock_ticks(clock: &Clock, view: &TimelineView, plot: &Rect) -> Vec<Tick> {
    let (from, to) = (clock.micros(view.first_step), clock.micros(view.last_step));
    let per_px = (to - from) / f64::from(plot.width_px.max(1.0));
    let step = time_distance(per_px * 90.0);
    let mut ticks = Vec::new();
    let mut time = floor_count(from.max(0.0)).div_ceil(step).saturating_mul(step);
    while count_f64(time) <= to {
        let x_px = plot.x_px + px((count_f64(time) - from) / per_px.max(f64::MIN_POSITIVE));
        let value = floor_count(clock.position(count_f64(time)).max(0.0));
        ticks.push(Tick { x_px, text: time_text(time as u64, step as u64), value });
        match time.checked_add(step) {
            Some(next) => time = next,
            None => break,
        }
    }
    ticks.retain(|tick| tick.is_within(plot));
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_in_binary_and_few() {
        for (top, step) in [
            (Bytes::mib(54), Bytes::mib(16)),
            (Bytes::gib(81), Bytes::gib(32)),
            (Bytes::new(3), Bytes::new(1)),
        ] {
            assert_eq!(tick_step(top, 4), step, "{top}");
        }
    }

    #[test]
    fn an_axis_of_bytes_has_four_to_six_round_ticks_and_one_unit() {
        let texts = |top: Bytes| {
            let ticks = ByteTicks::new(top, 240.0);
            (ticks.iter().map(|(_, text)| text).collect::<Vec<_>>().join(" "), ticks.unit().name())
        };
        assert_eq!(texts(Bytes::mib(13_000)), ("0 4 8 12".to_owned(), "GiB"));
        assert_eq!(texts(Bytes::mib(1300)), ("0 256 512 768 1024 1280".to_owned(), "MiB"));
        assert_eq!(texts(Bytes::mib(1500)), ("0 256 512 768 1024 1280".to_owned(), "MiB"));
        assert_eq!(texts(Bytes::mib(1600)), ("0 512 1024 1536".to_owned(), "MiB"));
        assert_eq!(texts(Bytes::mib(54)), ("0 16 32 48".to_owned(), "MiB"));
        for top in (3..4000_u64).map(|top| Bytes::new(top * top * top)) {
            let ticks = ByteTicks::new(top, 240.0);
            assert!((3..=5).contains(&ticks.count()), "{top}: {ticks:?}");
            for (tick, text) in ticks.iter().skip(1) {
                let said = text.parse::<f64>().expect("a number") * ticks.unit().bytes();
                assert!((said - bytes_f64(tick)).abs() < 1.0, "{top}: {text}");
            }
        }
        assert!(ByteTicks::new(Bytes::gib(80), 40.0).count() <= 2);
        assert_eq!(ByteTicks::new(Bytes::ZERO, f32::NAN).iter().count(), 2);
    }

    #[test]
    fn long_times_are_round_in_minutes() {
        let cases =
            [(7_000_000.0, 10), (11_000_000.0, 20), (31_000_000.0, 60), (61_000_000.0, 120), (4e9, 7200)];
        for (least, seconds) in cases {
            assert_eq!(time_distance(least), seconds * 1_000_000, "{least}");
        }
    }

    #[test]
    fn times_have_three_digits_and_a_unit() {
        let texts = [7, 12_340, 2_743_318, 7_200_000_000].map(duration);
        assert_eq!(texts, ["7 µs", "12.3 ms", "2.74 s", "120.0 min"]);
        // Neighbors on an axis have different texts.
        let ticks = [2_615_000, 2_620_000, 2_625_000].map(|time| time_text(time, 5_000));
        assert_eq!(ticks, ["2.615 s", "2.620 s", "2.625 s"]);
        assert_eq!([900_020, 900_040].map(|time| time_text(time, 20)), ["900.02 ms", "900.04 ms"]);
        assert_eq!(
            [3_600_000_000, 3_605_000_000].map(|time| time_text(time, 5_000_000)),
            ["60.00 min", "60.08 min"]
        );
    }

    #[test]
    fn step_distances_are_round_in_tens() {
        for (least, step) in [(0.1, 1), (1.5, 2), (30.0, 50), (101.0, 200), (0.0, 1)] {
            assert_eq!(step_distance(least), step);
        }
    }
}
