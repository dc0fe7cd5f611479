use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use blockyard_lab::{About, Finding, HoldingLine, Run, Verdict, VerdictKind, VerdictMoment, verdict as ask};
use blockyard_record::{Bytes, counted, grouped};
use serde_json::json;

use super::{Answer, Status, each};
use crate::options::VerdictOptions;
use crate::progress::Bar;

/// How many lines that hold memory people see; JSON has all.
const SHOWN: usize = 10;

pub(crate) fn verdict(options: &VerdictOptions) -> anyhow::Result<ExitCode> {
    if let [file] = options.files.as_slice()
        && !file.exists()
        && !super::is_preset(file)
        && file.extension().is_none()
        && file.components().count() == 1
    {
        bail!("`{}` is neither a command nor a file; `blockyard --help` lists the commands", file.display());
    }
    each(&options.files, options.json, |run, bar| answer(run, bar, options))
}

pub(super) fn answer(run: &Run, bar: &Bar, options: &VerdictOptions) -> anyhow::Result<Answer> {
    let conditions = options.limits.conditions_with(run, options.conf.as_deref());
    let found = ask(run, &conditions, &mut |progress| bar.report(&progress))?;
    let findings = found.findings.iter().map(|finding| {
        json!({
            "about": finding.about, "text": finding.text, "request": finding.request,
            "moments": moments(&finding.moments), "settings": finding.settings,
        })
    });
    let json = json!({
        "question": "verdict",
        "conf": conditions.conf,
        "kind": found.kind,
        "headline": found.headline,
        "cause": found.autopsy.as_ref().map(|autopsy| autopsy.cause),
        "findings": findings.collect::<Vec<_>>(),
        "held": found.held.iter().map(|held| json!({
            "line": held.line, "bytes": held.bytes.get(), "blocks": held.blocks, "last_request": held.last_request,
            "moments": moments(&held.moments),
        })).collect::<Vec<_>>(),
        "moment": found.moment,
        "setting": found.setting,
    });
    let status = if found.kind == VerdictKind::Fits { Status::Fine } else { Status::Found };
    Ok(Answer { json, text: text(&found), status })
}

fn moments(all: &[VerdictMoment]) -> Vec<serde_json::Value> {
    let moment =
        |moment: &VerdictMoment| json!({"name": moment.name, "request": moment.request, "step": moment.step});
    all.iter().map(moment).collect()
}

/// `(from step 3, request 45, to step 140, request 1,234)`, for what grows; nothing for other sentences, which name their requests.
fn growth_range(finding: &Finding) -> String {
    let [first, last] = finding.moments.as_slice() else { return String::new() };
    if finding.about != About::Grows {
        return String::new();
    }
    let place = |moment: &VerdictMoment| {
        let step = moment.step.map(|step| format!("step {}, ", grouped(step))).unwrap_or_default();
        format!("{step}request {}", grouped(moment.request))
    };
    format!(" (from {} to {})", place(first), place(last))
}

fn text(found: &Verdict) -> String {
    let mut text = format!("{}\n", found.headline);
    for about in About::ALL {
        let mut of_this = found.findings.iter().filter(|finding| finding.about == about).peekable();
        if of_this.peek().is_none() {
            continue;
        }
        let _ = writeln!(text, "  {}", about.title());
        for finding in of_this {
            let _ = writeln!(text, "    {}{}", finding.text, growth_range(finding));
        }
        if about == About::Sure {
            held(&mut text, &found.held);
        }
    }
    if let Some(conf) = &found.setting {
        let _ = writeln!(text, "  To copy\n    export PYTORCH_CUDA_ALLOC_CONF={conf}");
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
    for held in held.iter().take(SHOWN) {
        text.push_str(&line(held.bytes, held.blocks, &held.line));
    }
    let rest = held.get(SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let (bytes, blocks) =
            (rest.iter().map(|held| held.bytes).sum(), rest.iter().map(|held| held.blocks).sum());
        text.push_str(&line(bytes, blocks, &counted(rest.len(), "more line")));
    }
}
