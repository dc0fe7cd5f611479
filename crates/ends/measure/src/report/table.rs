//! Sections as text.

use std::fmt::Write as _;

use super::{BenchReport, RatioGoal, ReportRow, Section};
use crate::turns::{Measurement, geometric_mean};

/// The section as a table for a terminal, with its summary and notes.
pub fn table(section: &Section) -> String {
    let lines = cells(section);
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = format!("{} ({})\n", section.title, section.unit);
    for line in &lines {
        for (column, cell) in line.iter().enumerate() {
            let padding = " ".repeat(widths[column] - cell.chars().count());
            let _ = if column == 0 {
                write!(text, "  {cell}{padding}")
            } else {
                write!(text, "  {padding}{cell}")
            };
        }
        text.push('\n');
    }
    for note in closing(section) {
        let _ = writeln!(text, "  {note}");
    }
    text
}

/// All sections as Markdown.
pub fn markdown(report: &BenchReport) -> String {
    let mut text = format!("`{}`, {} rounds, on {}.\n", report.command, report.rounds, report.machine.line());
    for section in &report.sections {
        let _ = write!(text, "\n**{}** ({})\n\n", section.title, section.unit);
        for (index, line) in cells(section).iter().enumerate() {
            let _ = writeln!(text, "| {} |", line.join(" | "));
            if index == 0 {
                let rule: Vec<&str> =
                    (0..line.len()).map(|column| if column == 0 { "---" } else { "---:" }).collect();
                let _ = writeln!(text, "| {} |", rule.join(" | "));
            }
        }
        text.push('\n');
        for note in closing(section) {
            let _ = writeln!(text, "- {note}");
        }
    }
    text
}

fn cells(section: &Section) -> Vec<Vec<String>> {
    let has_ratios = section.rows.iter().any(|row| row.ratio.is_some());
    let mut head = vec![String::new()];
    head.extend(section.contenders.iter().cloned());
    if has_ratios {
        head.push("ratio".to_owned());
    }
    let line = |row: &ReportRow| {
        let mut line = vec![row.name.clone()];
        let first = row.values.first().copied().flatten().filter(|_| section.has_multiples);
        line.extend(row.values.iter().enumerate().map(|(place, value)| match (value, first) {
            (None, _) => "-".to_owned(),
            (Some(value), Some(first)) if place > 0 => {
                format!("{}, {:.2}x", shown(*value), value.median / first.median)
            }
            (Some(value), _) => shown(*value),
        }));
        if has_ratios {
            line.push(row.ratio.map_or_else(|| "-".to_owned(), times));
        }
        line
    };
    std::iter::once(head).chain(section.rows.iter().map(line)).collect()
}

/// The section's ratios in a line, with the goal and whether it is met; `None` where it has none.
pub fn summary_sentence(section: &Section) -> Option<String> {
    let summary = section.summary()?;
    let worst = match section.goal {
        None => String::new(),
        Some(_) => format!(", worst {:.2} times ({})", summary.worst, summary.worst_name),
    };
    let goal = match section.goal {
        None => String::new(),
        Some(RatioGoal::AtLeast { mean, each }) => {
            format!("; goal: at least {mean} times in the mean and {each} times on each")
        }
        Some(RatioGoal::AtMost(most)) => format!("; goal: at most {most} times in the mean"),
    };
    let result = match summary.is_met {
        None => "",
        Some(true) => ": met",
        Some(false) => ": NOT met",
    };
    Some(format!("geometric mean {:.2} times{worst}{goal}{result}{}", summary.mean, others(section)))
}

/// The ratios of the further contenders, for a goal that a large ratio meets.
fn others(section: &Section) -> String {
    let reached = |(place, name): (usize, &String)| {
        let value = |row: &ReportRow, place: usize| row.values.get(place).copied().flatten();
        let ratio = |row: &ReportRow| Some(value(row, 1)?.median / value(row, place)?.median);
        let mean = geometric_mean(&section.rows.iter().filter_map(ratio).collect::<Vec<_>>());
        format!("; {name}: {mean:.2} times in the mean")
    };
    match section.goal {
        Some(RatioGoal::AtLeast { .. }) => {
            section.contenders.iter().enumerate().skip(2).map(reached).collect()
        }
        _ => String::new(),
    }
}

fn closing(section: &Section) -> Vec<String> {
    summary_sentence(section).into_iter().chain(section.notes.iter().cloned()).collect()
}

/// `41.2 (40.1 to 45.0)`; without the range where there is none.
fn shown(measure: Measurement) -> String {
    let Measurement { median, least, most } = measure;
    if least.to_bits() == most.to_bits() {
        digits(median)
    } else {
        format!("{} ({} to {})", digits(median), digits(least), digits(most))
    }
}

fn times(ratio: Measurement) -> String {
    let Measurement { median, least, most } = ratio;
    if least.to_bits() == most.to_bits() {
        format!("{median:.2}x")
    } else {
        format!("{median:.2}x ({least:.2} to {most:.2})")
    }
}

/// Three significant digits, none after the point from 100 on.
pub fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn section() -> Section {
        let measure = |median: f64| Measurement { median, least: median - 1.0, most: median + 1.0 };
        let row = |name: &str, ours: f64, theirs: Option<f64>| ReportRow {
            name: name.to_owned(),
            units: 10,
            values: vec![Some(measure(ours)), theirs.map(measure)],
            ratio: theirs.map(|theirs| Measurement { median: theirs / ours, least: 1.5, most: 9.0 }),
        };
        Section {
            name: "pytorch".to_owned(),
            title: "Against PyTorch's library".to_owned(),
            unit: "ns a pair".to_owned(),
            contenders: vec!["ours".to_owned(), "PyTorch".to_owned()],
            rows: vec![
                row("long", 50.0, Some(400.0)),
                row("lost", 100.0, Some(50.0)),
                row("alone", 5.0, None),
            ],
            goal: Some(RatioGoal::AtLeast { mean: 10.0, each: 5.0 }),
            has_multiples: false,
            notes: vec!["fake device".to_owned()],
        }
    }

    #[test]
    fn a_lost_row_stands_like_the_others() {
        let text = table(&section());
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("long 50.0 (49.0 to 51.0) 400 (399 to 401) 8.00x (1.50 to 9.00)"), "{text}");
        assert!(words.contains("lost 100 (99.0 to 101) 50.0 (49.0 to 51.0) 0.50x (1.50 to 9.00)"), "{text}");
        assert!(text.contains("geometric mean 2.00 times, worst 0.50 times (lost)"), "{text}");
        assert!(text.contains("NOT met"), "{text}");
    }

    #[test]
    fn the_markdown_names_command_and_machine() {
        let machine = Machine { processor: "a processor".to_owned(), cores: 2, ..Machine::default() };
        let command = "cargo xtask bench".to_owned();
        let text = markdown(&BenchReport { machine, command, rounds: 7, sections: vec![section()] });
        assert!(text.starts_with("`cargo xtask bench`, 7 rounds, on a processor, 2 cores"), "{text}");
        assert!(text.contains("| alone | 5.00 (4.00 to 6.00) | - | - |"), "{text}");
    }

    #[test]
    fn multiples_are_of_the_first_contender() {
        let section = Section { has_multiples: true, ..section() };
        let text = table(&section).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("long 50.0 (49.0 to 51.0) 400 (399 to 401), 8.00x"), "{text}");
        assert!(text.contains("alone 5.00 (4.00 to 6.00) - -"), "{text}");
    }
}
