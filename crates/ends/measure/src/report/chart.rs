//! The results as one picture: a scene of `figure`, which writes SVG.

use blockyard_figure::{
    Anchor, Dash, Fill, Mark, Pattern, Point, Rect, Role, Scene, Theme, Weight, theme_css,
};

use super::{BenchReport, RatioGoal, ReportRow, Section};
use crate::turns::Measurement;

const WIDTH: f32 = 800.0;
const MARGIN: f32 = 16.0;
/// The x at which the names of bars end and the bars may begin.
const LEFT: f32 = 250.0;
/// The x at which the longest bar ends. The values are to the right.
const RIGHT: f32 = 680.0;
const ROW: f32 = 20.0;
const BAR: f32 = 12.0;
/// The height above the rows of a panel, for its title, the unit of its axis and the numbers of the axis.
const HEAD: f32 = 66.0;
const GAP: f32 = 22.0;
/// The height below the last panel, for the machine.
const FOOT: f32 = 34.0;
const TEXT_PX: f32 = 12.0;

/// Ratios that an axis may show.
const RATIOS: [f64; 11] = [0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// Bars on logarithmic axes, with the range of the rounds, as an SVG document for light and dark.
///
/// A section with a goal has a bar for each ratio, a section of multiples a bar for each value; other
/// sections are not drawn.
pub fn chart(report: &BenchReport) -> String {
    let panels: Vec<Panel> = report.sections.iter().filter_map(Panel::of).collect();
    let height = MARGIN + panels.iter().map(Panel::height).sum::<f32>() + FOOT;
    let mut scene = Scene::new(WIDTH, height);
    let mut top = MARGIN;
    for panel in &panels {
        panel.draw(top, &mut scene);
        top += panel.height();
    }
    let machine = format!("{} rounds on {}", report.rounds, report.machine.line());
    text(&mut scene, Role::TextMuted, (MARGIN, top + 12.0), Anchor::Start, machine);
    let about: Vec<String> = panels.iter().map(Panel::description).collect();
    let svg = scene.to_svg(Theme::Page, "How fast Blockyard is", &about.join(" "));
    // The colors of both themes travel with the file.
    svg.replacen("</desc>\n", &format!("</desc>\n<style>\n{}</style>\n", theme_css()), 1)
}

/// One section: rows with a bar each, and an axis for all rows.
struct Panel {
    title: String,
    axis: String,
    lines: Vec<ChartRow>,
    /// The value at which bars begin.
    origin: f64,
    goal: Option<f64>,
    ticks: Vec<(f64, String)>,
    /// The ends of the axis.
    from: f64,
    to: f64,
}

struct ChartRow {
    name: String,
    value: Measurement,
    shown: String,
    fill: Fill,
}

impl Panel {
    fn of(section: &Section) -> Option<Self> {
        match section.goal {
            Some(goal) => Self::of_ratios(section, goal),
            None if section.has_multiples => Self::of_values(section),
            None => None,
        }
    }

    fn of_ratios(section: &Section, goal: RatioGoal) -> Option<Self> {
        let line = |row: &ReportRow| {
            let value = row.ratio?;
            let fill = if goal.is_won(value.median) {
                Fill::solid(Role::Requested)
            } else {
                Fill { role: Role::Failure, pattern: Pattern::Hatch }
            };
            Some(ChartRow { name: row.name.clone(), value, shown: format!("{:.2}x", value.median), fill })
        };
        let lines: Vec<ChartRow> = section.rows.iter().filter_map(line).collect();
        let (least, most) = ends(&lines, &[1.0, goal.mean()])?;
        let from = RATIOS.into_iter().rev().find(|tick| *tick <= least).unwrap_or(least);
        let to = RATIOS.into_iter().find(|tick| *tick >= most).unwrap_or(most).max(from * 2.0);
        let ticks = RATIOS.into_iter().filter(|tick| (from..=to).contains(tick));
        let [ours, theirs] = [0, 1].map(|index| section.contenders.get(index).map_or("", String::as_str));
        let axis = match goal {
            RatioGoal::AtLeast { .. } => format!("{theirs} over {ours}, {} (more is better)", section.unit),
            RatioGoal::AtMost(_) => format!("{ours} over {theirs}, {} (less is better)", section.unit),
        };
        Some(Self {
            title: section.title.clone(),
            axis: format!("{axis}; hatched: worse than 1; logarithmic"),
            lines,
            origin: 1.0,
            goal: Some(goal.mean()),
            ticks: ticks.map(|tick| (tick, format!("{tick}x"))).collect(),
            from,
            to,
        })
    }

    fn of_values(section: &Section) -> Option<Self> {
        let lines = section.rows.iter().flat_map(|row| {
            row.values.iter().zip(&section.contenders).enumerate().filter_map(
                |(place, (value, contender))| {
                    let value = (*value)?;
                    // There are six contenders at most.
                    let role = Role::Stream(u8::try_from(place + 1).unwrap_or(u8::MAX));
                    let name = format!("{} · {contender}", row.name);
                    Some(ChartRow {
                        name,
                        value,
                        shown: super::digits(value.median),
                        fill: Fill::solid(role),
                    })
                },
            )
        });
        let lines: Vec<ChartRow> = lines.collect();
        let (least, most) = ends(&lines, &[])?;
        let from = 10_f64.powf(least.log10().floor());
        let to = 10_f64.powf(most.log10().ceil()).max(from * 10.0);
        let powers = std::iter::successors(Some(from), |tick| Some(tick * 10.0));
        // The last power is left out where rounding puts it after the end.
        let ticks = powers.take_while(|tick| *tick <= to * 1.001).take(30);
        Some(Self {
            title: section.title.clone(),
            axis: format!("{} (less is better); logarithmic", section.unit),
            lines,
            origin: from,
            goal: None,
            ticks: ticks.map(|tick| (tick, super::digits(tick))).collect(),
            from,
            to,
        })
    }

    fn height(&self) -> f32 {
        HEAD + count(self.lines.len()) * ROW + GAP
    }

    #[expect(clippy::cast_possible_truncation, reason = "a place between 0 and 1")]
    fn x(&self, value: f64) -> f32 {
        let place = (value.clamp(self.from, self.to) / self.from).ln() / (self.to / self.from).ln();
        let place = if place.is_finite() { place as f32 } else { 0.0 };
        LEFT + place * (RIGHT - LEFT)
    }

    fn draw(&self, top: f32, scene: &mut Scene) {
        let title = Mark::Text {
            at: Point::new(MARGIN, top + 14.0),
            text: self.title.clone(),
            role: Role::Text,
            size_px: 15.0,
            anchor: Anchor::Start,
            clip: None,
            weight: Weight::Bold,
        };
        scene.marks.push(title);
        text(scene, Role::TextMuted, (MARGIN, top + 32.0), Anchor::Start, self.axis.clone());
        let (first, last) = (top + HEAD, top + HEAD + count(self.lines.len()) * ROW);
        for (tick, shown) in &self.ticks {
            let x = self.x(*tick);
            let role = if (tick - self.origin).abs() < 1e-9 { Role::Text } else { Role::Grid };
            line(scene, role, Dash::Solid, (x, first), (x, last));
            text(scene, Role::TextMuted, (x, first - 6.0), Anchor::Middle, shown.clone());
        }
        if let Some(goal) = self.goal {
            let x = self.x(goal);
            line(scene, Role::Limit, Dash::Dashed, (x, first - 2.0), (x, last + 4.0));
            text(scene, Role::TextMuted, (x, last + 16.0), Anchor::Middle, "goal".to_owned());
        }
        for (index, bar) in self.lines.iter().enumerate() {
            self.draw_line(first + count(index) * ROW, bar, scene);
        }
    }

    fn draw_line(&self, top: f32, bar: &ChartRow, scene: &mut Scene) {
        let ChartRow { name, value, shown, fill } = bar;
        let middle = top + ROW / 2.0;
        text(scene, Role::Text, (LEFT - 8.0, middle + 4.0), Anchor::End, name.clone());
        let (origin, end) = (self.x(self.origin), self.x(value.median));
        let rect = Rect::new(origin.min(end), middle - BAR / 2.0, (end - origin).abs(), BAR);
        scene.marks.push(Mark::Rect { rect, fill: *fill, outline: None });
        let most = self.x(value.most);
        if value.most > value.least {
            line(scene, Role::Text, Dash::Solid, (self.x(value.least), middle), (most, middle));
        }
        let after = most.max(end).max(origin) + 6.0;
        text(scene, Role::Text, (after, middle + 4.0), Anchor::Start, shown.clone());
    }

    fn description(&self) -> String {
        let lines: Vec<String> =
            self.lines.iter().map(|line| format!("{} {}", line.name, line.shown)).collect();
        format!("{}, {}: {}.", self.title, self.axis, lines.join(", "))
    }
}

impl RatioGoal {
    fn mean(self) -> f64 {
        match self {
            Self::AtLeast { mean, .. } => mean,
            Self::AtMost(most) => most,
        }
    }

    fn is_won(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast { .. } => ratio >= 1.0,
            Self::AtMost(_) => ratio <= 1.0,
        }
    }
}

/// The least and the largest of those values, and of `also`, that have a logarithm; `None` without a row.
fn ends(lines: &[ChartRow], also: &[f64]) -> Option<(f64, f64)> {
    let values = lines.iter().flat_map(|line| [line.value.least, line.value.most, line.value.median]);
    let values = values.chain(also.iter().copied()).filter(|value| value.is_finite() && *value > 0.0);
    let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(least, most)| (least.min(value), most.max(value))))
    });
    ends.filter(|_| !lines.is_empty())
}

fn line(scene: &mut Scene, role: Role, dash: Dash, from: (f32, f32), to: (f32, f32)) {
    let (from, to) = (Point::new(from.0, from.1), Point::new(to.0, to.1));
    scene.marks.push(Mark::Line { from, to, role, dash, width_px: 1.0 });
}

fn text(scene: &mut Scene, role: Role, at: (f32, f32), anchor: Anchor, text: String) {
    scene.marks.push(Mark::Text {
        at: Point::new(at.0, at.1),
        text,
        role,
        size_px: TEXT_PX,
        anchor,
        clip: None,
        weight: Weight::Normal,
    });
}

#[expect(clippy::cast_precision_loss, reason = "a count of rows")]
fn count(rows: usize) -> f32 {
    rows as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn report(section: Section) -> BenchReport {
        let machine = Machine { processor: "a processor".to_owned(), cores: 2, ..Machine::default() };
        BenchReport { machine, command: String::new(), rounds: 7, sections: vec![section] }
    }

    fn section(ratios: &[(&str, f64)], goal: RatioGoal) -> Section {
        let row = |(name, ratio): &(&str, f64)| {
            let ratio = Measurement { median: *ratio, least: ratio * 0.9, most: ratio * 1.1 };
            ReportRow::new(*name, 1, &[]).with_ratio(ratio)
        };
        let rows = ratios.iter().map(row).collect();
        let section = Section::new("pytorch", "Against <it>", "ns a pair", ["ours", "theirs"]);
        Section { rows, goal: Some(goal), ..section }
    }

    #[test]
    fn a_lost_row_is_drawn_like_the_others_and_marked() {
        let goal = RatioGoal::AtLeast { mean: 10.0, each: 5.0 };
        let svg = chart(&report(section(&[("won", 8.0), ("lost", 0.5)], goal)));
        assert_eq!(svg.matches("url(#blockyard-page-failure-hatch)").count(), 1, "{svg}");
        assert!(svg.contains(">8.00x</text>") && svg.contains(">0.50x</text>"), "{svg}");
        assert!(svg.contains("Against &lt;it&gt;"), "{svg}");
        assert!(svg.contains("theirs over ours, ns a pair (more is better)"), "{svg}");
        assert!(svg.contains("prefers-color-scheme: dark"), "{svg}");
    }

    #[test]
    fn where_less_is_better_less_wins() {
        let svg = chart(&report(section(&[("row", 0.8)], RatioGoal::AtMost(1.2))));
        assert!(!svg.contains("hatch)"), "{svg}");
    }

    #[test]
    fn multiples_have_a_bar_for_each_value() {
        let mut section = Section::new("hits", "Hits", "ns a pair", ["ours", "theirs", "nobody's"]);
        section.has_multiples = true;
        section.rows.push(ReportRow::new("512 B", 1, &[vec![20.0, 21.0], vec![3000.0], vec![]]));
        let svg = chart(&report(section));
        assert!(svg.contains(">512 B · ours</text>") && svg.contains(">512 B · theirs</text>"), "{svg}");
        assert!(!svg.contains("nobody"), "{svg}");
        assert!(svg.contains(">10000</text>"), "the axis ends after the longest bar: {svg}");
    }

    #[test]
    fn odd_numbers_do_no_harm() {
        for ratio in [f64::NAN, f64::INFINITY, 0.0, 1e9] {
            let svg = chart(&report(section(&[("row", ratio)], RatioGoal::AtMost(1.2))));
            assert!(svg.ends_with("</svg>\n"), "{svg}");
            assert!(
                !svg.contains("=\"NaN") && !svg.contains("=\"inf"),
                "no place is without a number: {svg}"
            );
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let mut report = report(section(&[("row", 0.8)], RatioGoal::AtMost(1.2)));
        report.sections[0].notes.push("a note".to_owned());
        assert_eq!(BenchReport::from_json(&report.to_json().unwrap()).unwrap(), report);
        assert!(BenchReport::from_json("{}").is_err());
    }
}
