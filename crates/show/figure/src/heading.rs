//! A heading over a figure that leaves the page: the shown run, the moment, and the conditions of the run.

use blockyard_record::{Recording, grouped};

use crate::conversions::floor_count;
use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::role::Role;
use crate::scene::{Mark, Scene, TextStyle, Weight};
use crate::text_width::{fitted, text_width_px};
use crate::timeline::{Series, TimelineView};

const TITLE_PX: f32 = 16.0;
const FACTS_PX: f32 = 12.0;
const MARGIN_PX: f32 = 10.0;

/// The part of a run that a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownPart {
    /// The memory after this many steps.
    Moment(usize),
    /// The memory from the moment after the first number of steps until the moment after the second.
    Steps(usize, usize),
}

impl ShownPart {
    /// The steps that a figure over time shows.
    #[must_use]
    pub fn of_view(view: &TimelineView) -> Self {
        // Positions count complete steps, and the last column is the moment after the last of these.
        Self::Steps(floor_count(view.first_step), floor_count((view.last_step.ceil() - 1.0).max(0.0)))
    }
}

/// The facts without which a figure cannot be read elsewhere: which moment it shows, the unit, the release of
/// PyTorch, the settings, and the limit of the process or the memory of the device.
pub fn figure_facts(series: &Series, recording: &Recording, part: ShownPart) -> Vec<String> {
    let count = recording.step_count();
    let all = grouped(count);
    let (moment, last) = match part {
        ShownPart::Moment(step) => (format!("after request {} of {all}", grouped(step)), step),
        ShownPart::Steps(0, to) if to >= count => (format!("all {all} requests"), count),
        ShownPart::Steps(from, to) => {
            (format!("requests {} to {} of {all}", grouped(from), grouped(to.min(count))), to)
        }
    };
    let mut facts = vec![moment, "1 MiB is 1,048,576 bytes".to_owned()];
    let info = recording.info();
    facts.push(format!("rules of PyTorch {}", info.release));
    if !info.conf.is_empty() {
        facts.push(info.conf.clone());
    }
    if let Some(limit) = series.process_limit(last) {
        facts.push(format!("limit of the process {}", limit.range_text()));
    }
    facts.push(match recording.known_capacity() {
        Some(capacity) => format!("device {capacity}"),
        None => format!("device at least {}", info.capacity),
    });
    facts
}

impl Scene {
    /// The picture below a title and the lines of its facts, on a ground in the background color.
    #[must_use]
    pub fn under_heading(&self, title: &str, facts: &[String]) -> Self {
        let room = (self.width_px - 2.0 * MARGIN_PX).max(1.0);
        let mut lines: Vec<String> = Vec::new();
        for fact in facts {
            let longer = lines.last().map(|line| format!("{line} · {fact}"));
            match (longer, lines.last_mut()) {
                (Some(longer), Some(line)) if text_width_px(&longer, FACTS_PX, Weight::Normal) <= room => {
                    *line = longer;
                }
                _ => lines.push(fact.clone()),
            }
        }
        let mut made = Self::new(self.width_px, 0.0);
        let mut y = MARGIN_PX + TITLE_PX;
        let cut = |text: &str, size_px: f32, weight: Weight| fitted(text, size_px, weight, room);
        if let Some(title) = cut(title, TITLE_PX, Weight::Bold) {
            made.add_text(Point::new(MARGIN_PX, y), title, TextStyle::new(Role::Text, TITLE_PX).bold());
        }
        for line in lines {
            y += FACTS_PX + 5.0;
            if let Some(line) = cut(&line, FACTS_PX, Weight::Normal) {
                made.add_text(Point::new(MARGIN_PX, y), line, TextStyle::new(Role::TextMuted, FACTS_PX));
            }
        }
        let down_px = (y + MARGIN_PX).round();
        let ground = Rect::new(0.0, 0.0, self.width_px, down_px);
        made.marks.insert(0, Mark::Rect { rect: ground, fill: Fill::solid(Role::Background), outline: None });
        made.height_px = self.height_px + down_px;
        made.marks.extend(self.marks.iter().map(|mark| mark.moved_down(down_px)));
        let moved = self.targets.iter().map(|target| {
            let rect = Rect { y_px: target.rect.y_px + down_px, ..target.rect };
            crate::scene::Target { rect, ..*target }
        });
        made.targets.extend(moved);
        made
    }
}

impl Mark {
    /// The mark, moved down by this many pixels.
    fn moved_down(&self, by_px: f32) -> Self {
        let lower = |rect: &Rect| Rect { y_px: rect.y_px + by_px, ..*rect };
        let point = |at: &Point| Point::new(at.x_px, at.y_px + by_px);
        let mut moved = self.clone();
        match &mut moved {
            Self::Rect { rect, .. } | Self::Rounded { rect, .. } | Self::Frame { rect, .. } => {
                *rect = lower(rect);
            }
            Self::Line { from, to, .. } => (*from, *to) = (point(from), point(to)),
            Self::Path { points, .. } | Self::Area { points, .. } => {
                for at in points {
                    *at = point(at);
                }
            }
            Self::Text { at, clip, .. } => {
                *at = point(at);
                *clip = clip.as_ref().map(lower);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use blockyard_record::{Bytes, Event, EventSink, Recorder, RunInfo, StepOutcome};

    use super::*;

    #[test]
    fn a_figure_in_a_file_says_what_it_shows() {
        let info = RunInfo {
            capacity: Bytes::gib(80),
            conf: "expandable_segments:True".to_owned(),
            max_split_size: -1,
            ..RunInfo::default()
        };
        let mut recorder = Recorder::new(info);
        recorder.record(Event::FractionSet { limit: Some(Bytes::gib(8)) });
        recorder.finish_step(StepOutcome::Done);
        let recording = recorder.finish().unwrap();
        let facts = figure_facts(&Series::new(&recording), &recording, ShownPart::Moment(1));
        let text = facts.join(" · ");
        let release = recording.info().release;
        assert_eq!(
            text,
            format!(
                "after request 1 of 1 · 1 MiB is 1,048,576 bytes · rules of PyTorch {release} · expandable_segments:True · \
                 limit of the process 8 GiB · device 80 GiB"
            )
        );
        let mut scene = Scene::new(300.0, 40.0);
        scene.add_text(Point::new(1.0, 20.0), "inner", TextStyle::new(Role::Text, 11.0));
        let made = scene.under_heading("run.json: memory over time", &facts);
        let texts: Vec<(&str, f32)> = made
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Text { text, at, .. } => Some((text.as_str(), at.y_px)),
                _ => None,
            })
            .collect();
        assert_eq!(texts.first().map(|(text, _)| *text), Some("run.json: memory over time"));
        assert!(texts.len() > 4, "the facts of a narrow figure have several lines: {texts:?}");
        assert!(texts.windows(2).all(|pair| pair[0].1 < pair[1].1), "{texts:?}");
        assert_eq!(texts.last().map(|(_, y)| *y + 20.0), Some(made.height_px));
    }
}
