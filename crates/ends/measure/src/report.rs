//! Results as a table on the terminal, as Markdown, as JSON and as a chart.

mod chart;
mod table;

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::turns::{Measurement, count_for_turn, geometric_mean, per_unit, take_turns};

pub use chart::chart;
pub use table::{digits, markdown, summary_sentence, table};

/// Everything that one run measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// The machine that it ran on.
    pub machine: Machine,
    /// The command line.
    pub command: String,
    /// How many rounds each contender had.
    pub rounds: usize,
    /// The comparisons, in the order in which they were measured.
    pub sections: Vec<Section>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// The name of the section on the command line.
    pub name: String,
    /// The title: what the section compares.
    pub title: String,
    /// The unit of the values: `ns a pair`, `M events/s`.
    pub unit: String,
    /// The names of the contenders; ours first.
    pub contenders: Vec<String>,
    /// The traces or cases that were measured.
    pub rows: Vec<ReportRow>,
    /// The goal for the ratios; `None` if the section has no goal.
    #[serde(default)]
    pub goal: Option<RatioGoal>,
    /// Whether tables also show each value as a multiple of the first contender's, and the chart draws the
    /// values. This is for contenders that do the same work.
    #[serde(default, rename = "multiples")]
    pub has_multiples: bool,
    /// Sentences that a reader of the numbers must know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The goal for a section's ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum RatioGoal {
    /// The geometric mean is at least `mean`, and the ratio of every row at least `each`.
    AtLeast {
        /// The least geometric mean.
        mean: f64,
        /// The least ratio of any row.
        each: f64,
    },
    /// The geometric mean is at most this.
    AtMost(f64),
}

/// The values of one trace or one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportRow {
    /// The name of the trace or the case.
    pub name: String,
    /// How many units of work a value is the mean of.
    pub units: usize,
    /// The value of each contender; `None` if the contender does not take part.
    pub values: Vec<Option<Measurement>>,
    /// The second contender's value divided by ours, or ours divided by the second contender's where the goal
    /// is a small ratio.
    #[serde(default)]
    pub ratio: Option<Measurement>,
}

impl ReportRow {
    /// The row of these values, one list for each contender; a contender without values does not take part.
    #[must_use]
    pub fn new(name: impl Into<String>, units: usize, values: &[Vec<f64>]) -> Self {
        let values = values.iter().map(|values| (!values.is_empty()).then(|| Measurement::of(values)));
        Self { name: name.into(), units, values: values.collect(), ratio: None }
    }

    /// The same row with a ratio.
    #[must_use]
    pub fn with_ratio(self, ratio: Measurement) -> Self {
        Self { ratio: Some(ratio), ..self }
    }
}

impl Section {
    /// A section without rows, goal and notes.
    #[must_use]
    pub fn new<const N: usize>(name: &str, title: &str, unit: &str, contenders: [&str; N]) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            unit: unit.to_owned(),
            contenders: contenders.map(str::to_owned).to_vec(),
            rows: Vec::new(),
            goal: None,
            has_multiples: false,
            notes: Vec::new(),
        }
    }

    /// Adds a row of nanoseconds: each contender in its turn does its work as often as the number says, and
    /// returns how long that took. A first turn, which does not count, finds out how often.
    ///
    /// # Errors
    ///
    /// The errors of the contenders.
    pub fn time<E>(
        &mut self,
        row: &str,
        rounds: usize,
        contenders: &mut [&mut dyn FnMut(u32) -> Result<Duration, E>],
    ) -> Result<(), E> {
        let mut times = Vec::new();
        for contender in contenders.iter_mut() {
            times.push(count_for_turn(contender(1)?, 1));
        }
        let values = take_turns(rounds, contenders, |index, contender| {
            let times = times[index];
            Ok(Some(per_unit(contender(times)?, times as usize)))
        })?;
        self.rows.push(ReportRow::new(row, 1, &values));
        Ok(())
    }

    /// The geometric mean of the ratios, and the row with the worst ratio; `None` without ratios.
    pub fn summary(&self) -> Option<Summary> {
        let ratios: Vec<(f64, &str)> = self
            .rows
            .iter()
            .filter_map(|row| row.ratio.map(|ratio| (ratio.median, row.name.as_str())))
            .collect();
        let less_is_better = matches!(self.goal, Some(RatioGoal::AtMost(_)));
        let order = |left: &&(f64, &str), right: &&(f64, &str)| left.0.total_cmp(&right.0);
        let worst = if less_is_better { ratios.iter().max_by(order) } else { ratios.iter().min_by(order) };
        let (worst, worst_name) = *worst?;
        let mean = geometric_mean(&ratios.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>());
        let is_met = self.goal.map(|goal| match goal {
            RatioGoal::AtLeast { mean: wanted, each } => mean >= wanted && worst >= each,
            RatioGoal::AtMost(most) => mean <= most,
        });
        Some(Summary { mean, worst, worst_name: worst_name.to_owned(), is_met })
    }
}

/// The summary of a section's ratios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The geometric mean.
    pub mean: f64,
    /// The worst ratio.
    pub worst: f64,
    /// The row with the worst ratio.
    pub worst_name: String,
    /// Whether the goal is met; `None` without a goal.
    pub is_met: Option<bool>,
}

/// Why a report was not written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchReportError {
    /// The system does not write a file.
    #[error("cannot write {path}: {source}")]
    File {
        /// The file or the folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A result has no form as JSON.
    #[error("the results have no form as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl BenchReport {
    /// Writes `NAME.json`, `NAME.md` and `NAME.svg` into `folder`, which is made where it is missing.
    ///
    /// # Errors
    ///
    /// [`BenchReportError::File`] when a file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> Result<(), BenchReportError> {
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |source| BenchReportError::File { path, source }
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        for (ending, text) in [("json", self.to_json()?), ("md", markdown(self)), ("svg", chart(self))] {
            let path = folder.join(format!("{name}.{ending}"));
            fs::write(&path, text).map_err(failed(&path))?;
        }
        Ok(())
    }

    /// The report as JSON, with a summary for each section.
    ///
    /// # Errors
    ///
    /// [`BenchReportError::Json`] for a value that JSON does not have.
    pub fn to_json(&self) -> Result<String, BenchReportError> {
        let summaries: Vec<_> = self.sections.iter().map(Section::summary).collect();
        let json = serde_json::json!({ "report": self, "summaries": summaries });
        Ok(format!("{json:#}\n"))
    }

    /// The report that [`BenchReport::to_json`] wrote; a program in another language writes the same form.
    ///
    /// # Errors
    ///
    /// [`BenchReportError::Json`] for another text.
    pub fn from_json(text: &str) -> Result<Self, BenchReportError> {
        #[derive(Deserialize)]
        struct File {
            report: BenchReport,
        }
        Ok(serde_json::from_str::<File>(text)?.report)
    }
}
