//! The results in docs/speed.md, between two marks.

use std::fmt::Write as _;

use anyhow::{Result, bail};

use blockyard_measure::{BenchReport, ReportRow, Section, digits, summary_sentence};

const BEGIN: &str = "<!-- results: written by `cargo xtask bench --docs` -->\n";
const END: &str = "<!-- end of results -->\n";

/// The text of the page with these results between the marks.
///
/// # Errors
///
/// If the marks are missing.
pub fn into_page(page: &str, report: &BenchReport) -> Result<String> {
    let (Some(begin), Some(end)) = (page.find(BEGIN), page.find(END)) else {
        bail!("docs/speed.md has no place for results: the lines `{}` and `{}`", BEGIN.trim(), END.trim());
    };
    if end < begin {
        bail!("docs/speed.md ends its results before they begin");
    }
    Ok(format!("{}{}{}", &page[..begin + BEGIN.len()], results(report), &page[end..]))
}

/// A table of the comparison with PyTorch, and a line for every other section.
fn results(report: &BenchReport) -> String {
    let find = |name: &str| report.sections.iter().find(|section| section.name == name);
    let instructions = find("instructions");
    let mut text = String::new();
    if let Some(section) = find("pytorch") {
        let more: Vec<String> = instructions
            .map(|_| "in instructions".to_owned())
            .into_iter()
            .chain(section.contenders.iter().skip(2).cloned())
            .map(|head| format!(" {head} |"))
            .collect();
        let _ =
            writeln!(text, "\n| {} | Blockyard | PyTorch | ratio (range) |{}", section.unit, more.concat());
        let _ = writeln!(text, "| --- | ---: | ---: | ---: |{}", " ---: |".repeat(more.len()));
        for row in &section.rows {
            let _ = writeln!(text, "{}", line(row, instructions));
        }
    }
    text.push('\n');
    for section in &report.sections {
        let _ = writeln!(text, "- {}", section_line(section));
    }
    let machine = report.machine.line();
    let _ = writeln!(text, "\n`{}`, {} rounds, on {machine}.\n", report.command, report.rounds);
    text
}

fn line(row: &ReportRow, instructions: Option<&Section>) -> String {
    let value = |index: usize| {
        let value = row.values.get(index).copied().flatten();
        value.map_or_else(|| "-".to_owned(), |value| digits(value.median))
    };
    let ratio = row.ratio.map_or_else(
        || "-".to_owned(),
        |ratio| format!("{:.1}x ({:.1} to {:.1})", ratio.median, ratio.least, ratio.most),
    );
    let mut line = format!("| {} | {} | {} | {ratio} |", row.name, value(0), value(1));
    if let Some(section) = instructions {
        let counted = section.rows.iter().find(|counted| counted.name == row.name);
        let ratio = counted.and_then(|counted| counted.ratio);
        let ratio = ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.1}x", ratio.median));
        let _ = write!(line, " {ratio} |");
    }
    for other in 2..row.values.len() {
        let _ = write!(line, " {} |", value(other));
    }
    line
}

/// The section in a line: its mean and goal, or else its median values.
fn section_line(section: &Section) -> String {
    if let Some(sentence) = summary_sentence(section).filter(|_| section.goal.is_some()) {
        return format!("{}: {sentence}.", section.title);
    }
    let row = |row: &ReportRow| {
        let values = row.values.iter().flatten().map(|value| digits(value.median));
        format!("{} {}", row.name, values.collect::<Vec<_>>().join(" / "))
    };
    let rows: Vec<String> = section.rows.iter().map(row).collect();
    format!("{}, {} ({}): {}.", section.title, section.unit, section.contenders.join(" / "), rows.join("; "))
}

#[cfg(test)]
mod tests {
    use blockyard_measure::{Machine, Measurement, RatioGoal};

    use super::*;

    fn report() -> BenchReport {
        let row = |ours: f64, theirs: f64| ReportRow {
            name: "gpt2".to_owned(),
            units: 1,
            values: vec![Some(Measurement::exact(ours)), Some(Measurement::exact(theirs))],
            ratio: Some(Measurement::exact(theirs / ours)),
        };
        let section = |name: &str, ours: f64, theirs: f64| Section {
            rows: vec![row(ours, theirs)],
            goal: Some(RatioGoal::AtLeast { mean: 10.0, each: 5.0 }),
            ..Section::new(name, "Against PyTorch", "ns a pair", ["ours", "theirs"])
        };
        let machine = Machine { processor: "a processor".to_owned(), cores: 2, ..Machine::default() };
        let sections = vec![section("pytorch", 25.0, 300.0), section("instructions", 300.0, 3600.0)];
        BenchReport { machine, command: "cargo xtask bench".to_owned(), rounds: 9, sections }
    }

    #[test]
    fn results_replace_the_ones_before() {
        let page = format!("# It\n\n{BEGIN}old\n{END}\nMore.\n");
        let new = into_page(&page, &report()).unwrap();
        assert!(new.contains("| gpt2 | 25.0 | 300 | 12.0x (12.0 to 12.0) | 12.0x |"), "{new}");
        assert!(new.contains("- Against PyTorch: geometric mean 12.00 times"), "{new}");
        assert!(new.starts_with("# It\n") && new.ends_with("\nMore.\n") && !new.contains("old"), "{new}");
        assert_eq!(into_page(&new, &report()).unwrap(), new);
    }

    #[test]
    fn a_page_without_marks_is_left_alone() {
        assert!(into_page("# It\n", &report()).is_err());
        assert!(into_page(&format!("{END}{BEGIN}"), &report()).is_err());
    }
}
