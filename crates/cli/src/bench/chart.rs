//! Results as a chart: a bar for each row, on a scale of powers of ten.

use std::fmt::Write as _;

use crate::bench::report::{Report, Row};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 110.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 34.0;
/// Ours first, then the driver's own.
const COLORS: [(&str, &str); 5] = [
    ("blockyard", "#1f6feb"),
    ("blockyard, expandable", "#54a0ff"),
    ("blockyard, shared", "#7d8ff0"),
    ("cuMemAllocAsync", "#d9822b"),
    ("cuMemAlloc", "#8a5a2b"),
];

pub(crate) fn svg(report: &Report) -> String {
    let rows: Vec<(&'static str, Vec<&Row>)> = report
        .sections()
        .into_iter()
        .map(|section| (section, report.rows.iter().filter(|row| row.section == section).collect()))
        .collect();
    let scale = Scale::of(&report.rows);
    let height = 60.0 + rows.iter().map(|(_, rows)| HEAD + ROW * lines(rows.len())).sum::<f64>();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"24\" font-size=\"15\">Nanoseconds on {}, powers of ten</text>",
        escaped(&report.machine.device)
    );
    let mut y = 40.0;
    for (section, rows) in rows {
        y += HEAD;
        let _ = writeln!(text, "<text x=\"12\" y=\"{}\" font-weight=\"bold\">{section}</text>", y - 8.0);
        scale.write_lines(&mut text, y, ROW * lines(rows.len()));
        for row in rows {
            write_bar(&mut text, row, &scale, y);
            y += ROW;
        }
    }
    text.push_str("</svg>\n");
    text
}

fn write_bar(text: &mut String, row: &Row, scale: &Scale, y: f64) {
    let end = scale.x(row.nanos.median);
    let color = COLORS.iter().find(|(name, _)| *name == row.contender).map_or("#555555", |(_, color)| color);
    let _ = writeln!(
        text,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{} · {}</text>\
         <rect x=\"{LEFT}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" fill=\"{color}\"/>\
         <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y2}\" y2=\"{y2}\" stroke=\"#222222\"/>\
         <text x=\"{:.1}\" y=\"{}\">{:.1}</text>",
        LEFT - 8.0,
        y + 12.0,
        escaped(&row.what),
        row.contender,
        y + 2.0,
        end - LEFT,
        ROW - 4.0,
        scale.x(row.nanos.least),
        scale.x(row.nanos.most),
        scale.x(row.nanos.most).max(end) + 6.0,
        y + 12.0,
        row.nanos.median,
        y2 = y + ROW / 2.0,
    );
}

/// Whole powers of ten around all values.
struct Scale {
    least: i32,
    most: i32,
}

impl Scale {
    fn of(rows: &[Row]) -> Self {
        let least = rows.iter().map(|row| row.nanos.least).fold(f64::INFINITY, f64::min);
        let most = rows.iter().map(|row| row.nanos.most).fold(1.0, f64::max);
        #[expect(clippy::cast_possible_truncation, reason = "logarithms of times are small")]
        let power = |value: f64| value.max(0.1).log10() as i32;
        let least = if least.is_finite() { power(least) } else { 0 };
        Self { least, most: (power(most) + 1).max(least + 1) }
    }

    fn x(&self, nanos: f64) -> f64 {
        let share = (nanos.max(0.1).log10() - f64::from(self.least)) / f64::from(self.most - self.least);
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn write_lines(&self, text: &mut String, y: f64, height: f64) {
        for power in self.least..=self.most {
            let x = self.x(10_f64.powi(power));
            let _ = writeln!(
                text,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y}\" y2=\"{}\" stroke=\"#dddddd\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" fill=\"#777777\" font-size=\"10\" text-anchor=\"middle\">{}</text>",
                y + height,
                y - 3.0,
                tick_text(power)
            );
        }
    }
}

fn tick_text(power: i32) -> String {
    match power {
        ..3 => format!("{} ns", 10_f64.powi(power)),
        3..6 => format!("{} µs", 10_f64.powi(power - 3)),
        _ => format!("{} ms", 10_f64.powi(power - 6)),
    }
}

fn lines(count: usize) -> f64 {
    u32::try_from(count).map_or(0.0, f64::from)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
