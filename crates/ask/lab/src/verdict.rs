//! The verdict about a run, in the order in which a reader asks.

mod failure;
mod fit;
mod growth;
mod memory;
mod moments;
mod settings;
mod summary;

use blockyard_replay::OnProgress;
use serde::{Deserialize, Serialize};

pub use self::growth::{GrowthAdvice, growth_text, is_much_growth};
pub use self::summary::Fix;

use self::failure::verdict_of_failure;
use self::fit::verdict_of_fit;
use crate::autopsy::failure_and_growth;
use crate::code_fixes::add_code_fixes;
use crate::devices::add_devices;
use crate::gap::add_gap;
use crate::{Autopsy, CodeFixKind, Conditions, Finding, FindingTopic, LabError, Run, VerdictAnswer};

/// The verdict about a run: whether it went out of memory, why, and what helps.
///
/// All of it follows from [`autopsy`](crate::autopsy()), [`leaks`](crate::leaks()) and replays, so it cannot
/// contradict them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The verdict and its sentences.
    pub answer: VerdictAnswer,
    /// Why the run went out of memory, and all changes that were replayed; `None` if the run fits.
    pub autopsy: Option<Box<Autopsy>>,
    /// What to do about the growth that led to a failure; `None` for other runs.
    pub advice: Option<GrowthAdvice>,
}

impl From<VerdictAnswer> for Verdict {
    /// The verdict about a run that did not fail.
    fn from(answer: VerdictAnswer) -> Self {
        Self { answer, autopsy: None, advice: None }
    }
}

/// The verdict about a run under the limit that its file implies or that `conditions` give.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::Config`] for wrong settings, [`LabError::Run`] where the autopsy
/// cannot replay the run; a run that only the last replay refuses is a verdict that says so.
pub fn verdict(run: &Run, conditions: &Conditions, on_progress: OnProgress) -> Result<Verdict, LabError> {
    if let Some(state) = run.state() {
        let mut answer = state.verdict(&conditions.conf);
        add_devices(&mut answer, run);
        return Ok(answer.into());
    }
    let (mut verdict, completed) = match failure_and_growth(run, conditions, on_progress)? {
        Some((found, growth)) => {
            (verdict_of_failure(run, conditions, found, &growth, on_progress)?, growth.completed)
        }
        None => (verdict_of_fit(run, conditions, on_progress)?.into(), None),
    };
    add_gap(&mut verdict.answer, run, conditions, on_progress)?;
    add_code_fixes(&mut verdict, run, conditions, completed.as_ref(), on_progress)?;
    verdict.answer.fixes = verdict.fixes().iter().map(Fix::sentence).collect();
    let is_estimated = verdict.answer.code_fixes.iter().any(|fix| fix.kind == CodeFixKind::SmallerBatch);
    if verdict.autopsy.is_some() && !is_estimated {
        let findings = &mut verdict.answer.findings;
        findings.push(Finding::new(FindingTopic::Shortfall, SMALLER_BATCH));
        findings.sort_by_key(|finding| finding.about);
    }
    add_devices(&mut verdict.answer, run);
    Ok(verdict)
}

/// The warning about two settings that do not belong together.
fn pair_finding(run: &Run, conditions: &Conditions) -> Result<Option<Finding>, LabError> {
    let warning = conditions.config(run)?.warning_about_pair();
    Ok(warning.map(|text| Finding::new(FindingTopic::Helps, text)))
}

/// A file has one batch size. Only a run of the program shows the memory of another batch size.
const SMALLER_BATCH: &str = "one file does not show what a smaller batch takes: run the program with one, without a GPU, in the page under Python or with `blockyard dry-run`";
