//! The page with the result of `blockyard fit`: peak memory over the value, with the limit as a line.

mod answer;

pub use answer::fit_page;
pub(crate) use answer::page_of_answer;

use std::fmt::Write as _;

pub use blockyard_figure::{FitCurve, FitOutcome, FitPoint};

use blockyard_figure::{Size, Theme, fit_curve_role, fit_curves};
use blockyard_record::{exact_size, grouped, sentence};

use crate::document::{VERSION, write_head};
use crate::figures::write_figure;
use crate::html::{escaped, two_sizes};

/// The rules of style that the report of `fit` has beside those of every report.
const STYLE: &str = "pre { white-space: pre-wrap; font: .85rem/1.45 ui-monospace, \"Liberation Mono\", monospace; }\n\
    .mark { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; }\n\
    td.bytes, th.bytes { text-align: right; }\n";
/// For a screen or a sheet of paper, and for a phone.
const SIZES: [(&str, Size); 2] = [("wide", Size::new(960.0, 420.0)), ("narrow", Size::new(360.0, 340.0))];

/// Runs of a program with several values of one option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FitReport {
    /// The program.
    pub program: String,
    /// The name of the varied option.
    pub varied: String,
    /// The first sentence: the answer.
    pub headline: String,
    /// The searches, a line of the figure each: one for each GPU, value of another option, settings, or
    /// layout.
    pub curves: Vec<FitCurve>,
    /// The report as the command prints it.
    pub text: String,
    /// The facts that the answer depends on, by name.
    pub facts: Vec<(String, String)>,
}

/// The page as HTML. The same input gives the same page.
pub fn fit_report(page: &FitReport) -> String {
    let mut out = String::new();
    write_head(&mut out, &page.program, STYLE);
    let _ = writeln!(
        out,
        "<header>\n<p class=\"quiet\">What fits a GPU</p>\n<h1>{}</h1>\n</header>\n<section>\n<h2>{}</h2>",
        escaped(&page.program),
        escaped(&sentence(&page.headline))
    );
    let title = format!("Peak memory over {}", page.varied);
    let _ = writeln!(out, "<h3>{}</h3>", escaped(&title));
    write_figure(&mut out, &title, &page_text(page), CAPTION, &SIZES, &|size| {
        fit_curves(&page.varied, &page.curves, size)
    });
    write_answers(&mut out, page);
    let _ = writeln!(out, "<h3>Runs</h3>");
    for (index, curve) in page.curves.iter().enumerate() {
        write_runs(&mut out, page, index, curve);
    }
    let text = page.text.trim_end();
    if !text.is_empty() {
        let _ = writeln!(out, "<h3>What the command printed</h3>\n<pre>{}</pre>", escaped(text));
    }
    out.push_str("</section>\n<section>\n<h2>Where this comes from</h2>\n<dl class=\"facts\">\n");
    let made_by = [("Made by".to_owned(), format!("Blockyard {VERSION}, by runs without a GPU"))];
    for (name, value) in page.facts.iter().chain(&made_by) {
        let _ = writeln!(out, "<dt>{}</dt>\n<dd>{}</dd>", escaped(name), escaped(value));
    }
    out.push_str("</dl>\n</section>\n</main>\n</html>\n");
    out
}

const CAPTION: &str = "Solid lines are the peak reserved, dotted ones the peak allocated, of runs that fit. A cross on the limit is a run that \
    runs out of memory. An empty mark above the limit is the same value on a GPU without an end: what the run needs.";

/// The figure in words.
fn page_text(page: &FitReport) -> String {
    let rows = page.curves.iter().map(|curve| {
        let largest = match curve.largest {
            Some(largest) => format!("the largest {} that fits is {}", page.varied, grouped(largest)),
            None => "no largest value is known".to_owned(),
        };
        format!("{}: {largest}, of {} runs; the limit is {}.", curve.name, curve.points.len(), curve.limit)
    });
    rows.collect::<Vec<_>>().join(" ")
}

fn color(index: usize) -> String {
    let role = fit_curve_role(index);
    format!("<span class=\"mark\" style=\"background:{}\"></span>", Theme::Page.color(role))
}

fn write_answers(out: &mut String, page: &FitReport) {
    let _ = writeln!(
        out,
        "<table class=\"numbers\">\n<thead><tr><th>Largest {}</th><th>Peak reserved</th><th>Of</th></tr></thead>\n<tbody>",
        escaped(&page.varied)
    );
    for (index, curve) in page.curves.iter().enumerate() {
        let best = curve.points.iter().find(|point| Some(point.value) == curve.largest);
        let of = if curve.gpu == curve.name { String::new() } else { format!(" of {}", curve.gpu) };
        let limit = format!("limit {}{of}", curve.limit);
        let (largest, reserved) = match best {
            Some(best) => (grouped(best.value), two_sizes(best.reserved)),
            None => ("not known, or none".to_owned(), String::new()),
        };
        let _ = writeln!(
            out,
            "<tr><td>{largest}</td><td class=\"bytes\">{reserved}</td><td \
             class=\"what\">{}<strong>{}</strong> <span class=\"quiet\">{}</span></td></tr>",
            color(index),
            escaped(&curve.name),
            escaped(&limit)
        );
    }
    out.push_str("</tbody>\n</table>\n");
}

fn write_runs(out: &mut String, page: &FitReport, index: usize, curve: &FitCurve) {
    let open = if index == 0 { " open" } else { "" };
    let _ = writeln!(
        out,
        "<details{open}><summary>{}{}: {} runs</summary>\n<table class=\"numbers\">\n<thead><tr><th>{}</th><th>Peak reserved</th>\
         <th>Peak allocated, and what became of the run</th></tr></thead>\n<tbody>",
        color(index),
        escaped(&curve.name),
        curve.points.len(),
        escaped(&page.varied)
    );
    let mut points = curve.points.clone();
    points.sort_by_key(|point| (point.value, point.reserved));
    for point in points {
        let outcome = match point.outcome {
            FitOutcome::Fits => "fits",
            FitOutcome::RunsOut => "runs out of memory; the peaks are those until then",
            FitOutcome::WithoutLimit => "on a GPU without an end",
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"bytes\">{}</td><td class=\"what\">{} <span class=\"quiet\">{outcome}</span></td></tr>",
            grouped(point.value),
            two_sizes(point.reserved),
            escaped(&exact_size(point.allocated)),
        );
    }
    out.push_str("</tbody>\n</table></details>\n");
}

#[cfg(test)]
mod tests {
    use blockyard_record::Bytes;

    use super::*;

    fn point(value: u64, mib: u64, outcome: FitOutcome) -> FitPoint {
        FitPoint { value, allocated: Bytes::mib(mib - 10), reserved: Bytes::mib(mib), outcome }
    }

    fn page() -> FitReport {
        let curve = |name: &str, gib: u64| FitCurve {
            name: name.to_owned(),
            limit: Bytes::gib(gib),
            gpu: name.to_owned(),
            largest: Some(30),
            points: vec![
                point(31, 1100, FitOutcome::WithoutLimit),
                point(1, 100, FitOutcome::Fits),
                point(30, 1000, FitOutcome::Fits),
                point(31, 900, FitOutcome::RunsOut),
            ],
        };
        FitReport {
            program: "<b>train.py".to_owned(),
            varied: "batch-size".to_owned(),
            headline: "batch-size 30 is the largest".to_owned(),
            curves: vec![curve("Tesla T4", 1), curve("L4", 2)],
            text: "a & b\n".to_owned(),
            facts: vec![("Steps".to_owned(), "at most 3".to_owned())],
        }
    }

    #[test]
    fn the_page_has_each_curve_each_run_and_no_foreign_element() {
        let html = fit_report(&page());
        for part in [
            "&lt;b&gt;train.py",
            "<h2>batch-size 30 is the largest.</h2>",
            "Tesla T4</strong> <span class=\"quiet\">limit 1 GiB</span>",
            "runs out of memory; the peaks",
            "on a GPU without an end",
            "a &amp; b",
            "<dd>at most 3</dd>",
        ] {
            assert!(html.contains(part), "{part}\n{html}");
        }
        assert!(!html.contains("<b>") && !html.contains("<script"));
        assert_eq!(html.matches("<svg").count(), 2);
        assert_eq!(html, fit_report(&page()));
    }

    #[test]
    fn nothing_is_no_panic() {
        let mut empty = FitReport { curves: vec![FitCurve::default()], ..FitReport::default() };
        assert!(fit_report(&empty).contains("not known, or none"));
        let most = FitPoint {
            value: u64::MAX,
            allocated: Bytes::new(u64::MAX),
            reserved: Bytes::new(u64::MAX),
            outcome: FitOutcome::Fits,
        };
        empty.curves[0].points = vec![most, FitPoint { value: 0, ..most }];
        empty.curves[0].largest = Some(u64::MAX);
        assert!(fit_report(&empty).contains("<svg"));
    }
}
