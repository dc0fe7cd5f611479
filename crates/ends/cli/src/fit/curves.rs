//! The curves of a search, for the page of `--report`.

use blockyard_answers::{FitAnswer, FitResult};
use blockyard_budget::fit::{Question, largest_sentence};
use blockyard_report::{FitReport, fit_page, fit_report};

use super::FitOptions;

/// The page with a line for each search, from the answer and its JSON; `None` for settings and layouts.
pub(super) fn page(
    options: &FitOptions,
    question: &Question,
    (answer, json): (&FitAnswer, &str),
    text: &str,
) -> Option<String> {
    let vary = question.vary()?;
    let FitReport { varied, mut curves, mut facts, .. } = fit_page(json.as_bytes())?;
    let all_values = format!("the largest {} of {}", vary.name, vary.values);
    let headline = match &answer.result {
        FitResult::Largest(found) if found.others.is_empty() => largest_sentence(vary, &found.first),
        FitResult::Map(found) => {
            let rows = std::iter::once(&found.first).chain(&found.others).flat_map(|on_gpu| &on_gpu.rows);
            for (curve, row) in curves.iter_mut().zip(rows) {
                let option = row.value.map(|_| format!("{} ", question.by_name())).unwrap_or_default();
                let gpu = if found.others.is_empty() { String::new() } else { format!(", {}", curve.gpu) };
                curve.name = format!("{option}{}{gpu}", question.row_name(row));
            }
            format!("{all_values}, by {}", question.by_name())
        }
        _ => {
            let largest = curves.iter().map(|curve| {
                let most = curve.largest.map_or_else(|| "none".to_owned(), |largest| largest.to_string());
                format!("{most} on {}", curve.gpu)
            });
            format!("{all_values}: {}", largest.collect::<Vec<_>>().join(", "))
        }
    };
    if let Some(conf) = options.program.conf.clone().filter(|conf| !conf.is_empty()) {
        facts.push(("Settings".to_owned(), conf));
    }
    let program = options.file.file_name().unwrap_or(options.file.as_os_str()).to_string_lossy().into_owned();
    Some(fit_report(&FitReport { program, varied, headline, curves, text: text.to_owned(), facts }))
}
