//! `blockyard verdict`: what happened in a run, as text and as JSON.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use blockyard_answers::{Finding, FindingTopic, HoldingLine, VerdictAnswer, VerdictKind, VerdictMoment};
use blockyard_lab::{Run, verdict as ask};
use blockyard_record::{Bytes, counted, grouped};
use blockyard_rules::shell_line;

use super::{ConfOptions, FileOptions, QuestionReply, each_of, read_all};
use crate::exit_status::ExitStatus;
use crate::progress::Bar;

/// How many lines that hold memory the text shows; JSON has all.
const SHOWN_LINES: usize = 10;

pub(crate) fn verdict(options: &FileOptions<ConfOptions>) -> anyhow::Result<ExitCode> {
    if let [file] = options.files.as_slice()
        && !file.exists()
        && !super::is_preset(file)
        && file.extension().is_none()
        && file.components().count() == 1
    {
        bail!("`{}` is neither a command nor a file; `blockyard --help` lists the commands", file.display());
    }
    each_of(&options.files, options.json, read_all, |run, bar| answer(run, bar, &options.question))
}

pub(super) fn answer(run: &Run, bar: &Bar, options: &ConfOptions) -> anyhow::Result<QuestionReply> {
    let conditions = options.of_run(run);
    let found = ask(run, &conditions, &mut |progress| bar.report(&progress))?.answer;
    let status = match found.kind {
        VerdictKind::Fits | VerdictKind::Grows => ExitStatus::Positive,
        VerdictKind::Leak | VerdictKind::OutOfMemory => ExitStatus::Negative,
        VerdictKind::StateOnly | VerdictKind::NotReplayed => ExitStatus::Failed,
    };
    Ok(QuestionReply { text: text(&found), json: found.into(), status })
}

/// `(from iteration 3, request 45 to iteration 140, request 1,234)`, for a sentence about growth; empty for
/// other sentences, which name their requests.
fn growth_range(finding: &Finding) -> String {
    let [first, last] = finding.moments.as_slice() else { return String::new() };
    if finding.about != FindingTopic::Grows {
        return String::new();
    }
    let place = |moment: &VerdictMoment| {
        let iteration =
            moment.step.map(|number| format!("iteration {}, ", grouped(number))).unwrap_or_default();
        format!("{iteration}request {}", grouped(moment.request))
    };
    format!(" (from {} to {})", place(first), place(last))
}

fn text(found: &VerdictAnswer) -> String {
    let mut text = format!("{}\n", found.headline);
    for (place, fix) in found.fixes.iter().enumerate() {
        let _ = writeln!(text, "  {}. {fix}", place.saturating_add(1));
    }
    for (about, findings) in found.sections().filter(|(_, findings)| !findings.is_empty()) {
        let _ = writeln!(text, "  {}", about.title());
        for finding in findings {
            let _ = writeln!(text, "    {}{}", finding.text, growth_range(finding));
        }
        if about == FindingTopic::Certainty {
            held(&mut text, &found.held);
        }
    }
    if let Some(conf) = &found.setting {
        let _ = writeln!(text, "  To copy\n    {}", shell_line(conf));
    }
    text
}

fn held(text: &mut String, held: &[HoldingLine]) {
    if held.is_empty() {
        return;
    }
    let _ = writeln!(text, "  What held the memory");
    let line = |bytes: Bytes, blocks: u64, what: &str| {
        format!(
            "    {:>12}  {:>7} {}  {what}\n",
            bytes.to_string(),
            grouped(blocks),
            if blocks == 1 { "block " } else { "blocks" }
        )
    };
    for held in held.iter().take(SHOWN_LINES) {
        text.push_str(&line(held.bytes, held.blocks, &held.text()));
    }
    let rest = held.get(SHOWN_LINES..).unwrap_or_default();
    if !rest.is_empty() {
        let (bytes, blocks) =
            (rest.iter().map(|held| held.bytes).sum(), rest.iter().map(|held| held.blocks).sum());
        text.push_str(&line(bytes, blocks, &counted(rest.len(), "more line")));
    }
}
