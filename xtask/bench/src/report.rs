//! Results as a table on the terminal, as Markdown, as JSON and as a chart.

mod chart;
mod page;
mod table;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::machine::Machine;
use crate::measure::{Measure, geometric_mean};

pub use chart::chart;
pub use page::into_page;
pub use table::{markdown, table};

/// Everything that one run measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What it ran on.
    pub machine: Machine,
    /// The command.
    pub command: String,
    /// How many rounds each contender had.
    pub rounds: usize,
    /// In the order of their making.
    pub sections: Vec<Section>,
}

/// One comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// Its name on the command line.
    pub name: String,
    /// What is compared.
    pub title: String,
    /// What the values count: `ns a pair`, `M events/s`.
    pub unit: String,
    /// Who is compared; ours first.
    pub contenders: Vec<String>,
    /// What is measured on.
    pub rows: Vec<Row>,
    /// What the ratios should be.
    pub goal: Option<Goal>,
    /// What else must be said.
    pub notes: Vec<String>,
}

/// What is wanted of a section's ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Goal {
    /// The geometric mean at least `mean` and every row at least `each`.
    AtLeast {
        /// Of the geometric mean.
        mean: f64,
        /// Of every row.
        each: f64,
    },
    /// The geometric mean at most this.
    AtMost(f64),
}

/// One trace, or one case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// How many units a value is the mean of.
    pub units: usize,
    /// For each contender; `None` where it does not take part.
    pub values: Vec<Option<Measure>>,
    /// The second contender's value over ours, or ours over its where less is the goal.
    pub ratio: Option<Measure>,
}

impl Section {
    /// The geometric mean of the ratios, and the row with the worst one.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        let ratios: Vec<(f64, &str)> = self
            .rows
            .iter()
            .filter_map(|row| row.ratio.map(|ratio| (ratio.median, row.name.as_str())))
            .collect();
        let less_is_better = matches!(self.goal, Some(Goal::AtMost(_)));
        let order = |left: &&(f64, &str), right: &&(f64, &str)| left.0.total_cmp(&right.0);
        let worst = if less_is_better { ratios.iter().max_by(order) } else { ratios.iter().min_by(order) };
        let (worst, worst_name) = *worst?;
        let mean = geometric_mean(&ratios.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>());
        let is_met = self.goal.map(|goal| match goal {
            Goal::AtLeast { mean: wanted, each } => mean >= wanted && worst >= each,
            Goal::AtMost(most) => mean <= most,
        });
        Some(Summary { mean, worst, worst_name: worst_name.to_owned(), is_met })
    }
}

/// A section's ratios in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The geometric mean.
    pub mean: f64,
    /// The worst one.
    pub worst: f64,
    /// Whose that is.
    pub worst_name: String,
    /// Whether the goal is met, if there is one.
    pub is_met: Option<bool>,
}

impl Report {
    /// Writes `results.json`, `results.md` and `results.svg` into `folder`.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let summaries: Vec<_> = self.sections.iter().map(Section::summary).collect();
        let json = serde_json::json!({ "report": self, "summaries": summaries });
        for (name, text) in [
            ("results.json", serde_json::to_string_pretty(&json)?),
            ("results.md", markdown(self)),
            ("results.svg", chart(self)),
        ] {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}
