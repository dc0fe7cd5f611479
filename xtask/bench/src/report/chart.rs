//! The ratios as one picture, readable in light and dark.

use std::fmt::Write as _;

use super::{Goal, Report, Section};
use crate::measure::Measure;

const WIDTH: f64 = 760.0;
const MARGIN: f64 = 16.0;
/// Where names of rows end and bars may begin.
const LEFT: f64 = 170.0;
/// Where bars end; behind them there is room for their values.
const RIGHT: f64 = 610.0;
const ROW: f64 = 20.0;
const BAR: f64 = 12.0;
/// Above the rows of a panel: its title, what its axis counts, the numbers of the axis.
const HEAD: f64 = 66.0;
const GAP: f64 = 22.0;
/// Below the last panel: what the machine was, and what is not in the numbers.
const FOOT: f64 = 46.0;

const STYLE: &str = "
  text { font: 12px system-ui, sans-serif; fill: #1c2024; }
  .title { font-size: 15px; font-weight: 600; }
  .muted { fill: #5b636b; }
  .value { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
  .grid { stroke: #d9dde1; }
  .one { stroke: #1c2024; }
  .goal { stroke: #8a5a00; stroke-dasharray: 5 3; }
  .won { fill: #2f6fb5; }
  .lost { fill: url(#hatch); stroke: #a33b20; }
  .hatch { stroke: #a33b20; stroke-width: 3; }
  .range { stroke: #1c2024; stroke-width: 1.5; }
  .paper { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ec; }
    .muted { fill: #a2abb3; }
    .value { stroke: #15181b; }
    .grid { stroke: #3a4148; }
    .one, .range { stroke: #e6e9ec; }
    .goal { stroke: #e0b050; }
    .won { fill: #6ea8e6; }
    .lost, .hatch { stroke: #ef8a6a; }
    .paper { fill: #15181b; }
  }
";

/// The numbers that an axis may show.
const TICKS: [f64; 11] = [0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// A bar for each row of each section that has ratios and a goal, on logarithmic axes, with the range of the rounds.
#[must_use]
pub fn chart(report: &Report) -> String {
    let panels: Vec<Panel<'_>> = report.sections.iter().filter_map(Panel::of).collect();
    let height = MARGIN + panels.iter().map(Panel::height).sum::<f64>() + FOOT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title description\">\n\
         <title id=\"title\">How fast Blockyard is</title>\n<desc id=\"description\">{}</desc>\n<style>{STYLE}</style>\n\
         <defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><line class=\"hatch\" y2=\"6\"/></pattern></defs>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n",
        escaped(&description(&panels)),
    );
    let mut top = MARGIN;
    for panel in &panels {
        panel.draw(top, &mut svg);
        top += panel.height();
    }
    let machine = format!("{} rounds on {}", report.rounds, report.machine.line());
    text(&mut svg, "muted", MARGIN, top + 12.0, "start", &machine);
    let said = "Fake device: no driver call is in the timed part. Hatched bars are on the losing side of 1.";
    text(&mut svg, "muted", MARGIN, top + 30.0, "start", said);
    svg.push_str("</svg>\n");
    svg
}

struct Panel<'a> {
    section: &'a Section,
    goal: Goal,
    rows: Vec<(&'a str, Measure)>,
    /// The ends of the axis.
    from: f64,
    to: f64,
}

impl<'a> Panel<'a> {
    fn of(section: &'a Section) -> Option<Self> {
        let goal = section.goal?;
        let rows: Vec<_> =
            section.rows.iter().filter_map(|row| row.ratio.map(|ratio| (row.name.as_str(), ratio))).collect();
        let ends = rows.iter().flat_map(|(_, ratio)| [ratio.least, ratio.most, ratio.median]);
        let ends: Vec<f64> =
            ends.chain([1.0, goal.mean()]).filter(|end| end.is_finite() && *end > 0.0).collect();
        let least = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ends.iter().copied().fold(0.0, f64::max);
        let from = TICKS.into_iter().rev().find(|tick| *tick <= least).unwrap_or(least);
        let to = TICKS.into_iter().find(|tick| *tick >= most).unwrap_or(most);
        (!rows.is_empty()).then_some(Self { section, goal, rows, from, to: to.max(from * 2.0) })
    }

    fn height(&self) -> f64 {
        HEAD + count(self.rows.len()) * ROW + GAP
    }

    fn x(&self, ratio: f64) -> f64 {
        let place = (ratio.clamp(self.from, self.to) / self.from).ln() / (self.to / self.from).ln();
        LEFT + place * (RIGHT - LEFT)
    }

    fn draw(&self, top: f64, svg: &mut String) {
        text(svg, "title", MARGIN, top + 14.0, "start", &self.section.title);
        text(svg, "muted", MARGIN, top + 32.0, "start", &self.axis());
        let (first, last) = (top + HEAD, top + HEAD + count(self.rows.len()) * ROW);
        for tick in TICKS.into_iter().filter(|tick| (self.from..=self.to).contains(tick)) {
            let x = self.x(tick);
            let class = if (tick - 1.0).abs() < 1e-9 { "one" } else { "grid" };
            line(svg, class, (x, first), (x, last));
            text(svg, "muted", x, first - 6.0, "middle", &format!("{tick}x"));
        }
        let goal = self.x(self.goal.mean());
        line(svg, "goal", (goal, first - 2.0), (goal, last + 4.0));
        text(svg, "muted", goal, last + 16.0, "middle", "goal");
        for (index, (name, ratio)) in self.rows.iter().enumerate() {
            self.draw_row(first + count(index) * ROW, name, *ratio, svg);
        }
    }

    fn draw_row(&self, top: f64, name: &str, ratio: Measure, svg: &mut String) {
        let middle = top + ROW / 2.0;
        text(svg, "", LEFT - 8.0, middle + 4.0, "end", name);
        let (one, end) = (self.x(1.0), self.x(ratio.median));
        let class = if self.goal.is_won(ratio.median) { "won" } else { "lost" };
        let (left, width, bar) = (one.min(end), (end - one).abs(), middle - BAR / 2.0);
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{bar:.1}\" width=\"{width:.1}\" height=\"{BAR}\"/>"
        );
        if ratio.most > ratio.least {
            line(svg, "range", (self.x(ratio.least), middle), (self.x(ratio.most), middle));
        }
        let after = self.x(ratio.most).max(end).max(one);
        text(svg, "value", after + 6.0, middle + 4.0, "start", &format!("{:.2}x", ratio.median));
    }

    /// What the axis counts.
    fn axis(&self) -> String {
        let names = &self.section.contenders;
        let [ours, theirs] = [0, 1].map(|index| names.get(index).map_or("", String::as_str));
        match self.goal {
            Goal::AtLeast { .. } => {
                format!("{theirs} over {ours}, {} (more is better, logarithmic)", self.section.unit)
            }
            Goal::AtMost(_) => {
                format!("{ours} over {theirs}, {} (less is better, logarithmic)", self.section.unit)
            }
        }
    }
}

impl Goal {
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

fn description(panels: &[Panel<'_>]) -> String {
    let panel_text = |panel: &Panel<'_>| {
        let rows: Vec<String> =
            panel.rows.iter().map(|(name, ratio)| format!("{name} {:.2}x", ratio.median)).collect();
        format!("{}, {}: {}.", panel.section.title, panel.axis(), rows.join(", "))
    };
    panels.iter().map(panel_text).collect::<Vec<_>>().join(" ")
}

fn line(svg: &mut String, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn text(svg: &mut String, class: &str, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escaped(words);
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[expect(clippy::cast_precision_loss, reason = "a count of rows")]
fn count(rows: usize) -> f64 {
    rows as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::report::Row;

    fn report(ratios: &[(&str, f64)], goal: Goal) -> Report {
        let row = |(name, ratio): &(&str, f64)| Row {
            name: (*name).to_owned(),
            units: 1,
            values: Vec::new(),
            ratio: Some(Measure { median: *ratio, least: ratio * 0.9, most: ratio * 1.1 }),
        };
        let section = Section {
            name: "pytorch".to_owned(),
            title: "Against <it>".to_owned(),
            unit: "ns a pair".to_owned(),
            contenders: vec!["ours".to_owned(), "theirs".to_owned()],
            rows: ratios.iter().map(row).collect(),
            goal: Some(goal),
            notes: Vec::new(),
        };
        let machine = Machine {
            processor: "a processor".to_owned(),
            cores: 2,
            load: "0.1".to_owned(),
            rustc: "rustc 1".to_owned(),
        };
        Report { machine, command: String::new(), rounds: 7, sections: vec![section] }
    }

    #[test]
    fn a_lost_row_is_drawn_like_the_others_and_marked() {
        let svg = chart(&report(&[("won", 8.0), ("lost", 0.5)], Goal::AtLeast { mean: 10.0, each: 5.0 }));
        assert!(svg.contains("class=\"won\"") && svg.contains("class=\"lost\""), "{svg}");
        assert!(svg.contains(">8.00x</text>") && svg.contains(">0.50x</text>"), "{svg}");
        assert!(svg.contains("Against &lt;it&gt;"), "{svg}");
        assert!(svg.contains("theirs over ours, ns a pair (more is better, logarithmic)"), "{svg}");
    }

    #[test]
    fn where_less_is_better_less_wins() {
        let svg = chart(&report(&[("row", 0.8)], Goal::AtMost(1.2)));
        assert!(svg.contains("<rect class=\"won\""), "{svg}");
    }

    #[test]
    fn odd_numbers_do_no_harm() {
        for ratio in [f64::NAN, f64::INFINITY, 0.0, 1e9] {
            let svg = chart(&report(&[("row", ratio)], Goal::AtMost(1.2)));
            assert!(svg.ends_with("</svg>\n"));
        }
    }
}
