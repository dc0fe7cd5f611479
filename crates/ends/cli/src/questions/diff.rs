//! `blockyard diff`: what changed between two runs, as text and as JSON.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context;
use blockyard_answers::DiffAnswer;
use blockyard_lab::{Diff, Run, diff as ask, diff_iterations as ask_steps};
use blockyard_record::{grouped, signed};

use super::{QuestionReply, add_notes, each, read};
use crate::exit_status::ExitStatus;
use crate::options::DiffOptions;
use crate::progress::Bar;

/// How many changes the text shows; JSON has all.
const SHOWN_LINES: usize = 12;

pub(crate) fn diff(options: &DiffOptions) -> anyhow::Result<ExitCode> {
    if let [first, second] = *options.steps {
        return each(std::slice::from_ref(&options.before), options.json, |run, bar| {
            let run = run.under(&options.under.of_run(run));
            answer_steps(&run, first, second, bar)
        });
    }
    let name = options.before.display().to_string();
    let before = read(&options.before, &Bar::new(&name)).context(name)?;
    let mut place = 0;
    let mut last = String::new();
    each(&options.files, options.json, |run, bar| {
        // Devices are compared in their order: the first with the first, the second with the second.
        place = if run.file() == last && before.len() > 1 { place + 1 } else { 0 };
        run.file().clone_into(&mut last);
        let before = before.get(place).or(before.first()).context("there is no run to compare with")?;
        let under = |run: &Run| run.under(&options.under.of_run(run));
        answer(&under(before), &under(run), bar)
    })
}

pub(super) fn answer_steps(
    run: &Run,
    first: usize,
    second: usize,
    bar: &Bar,
) -> anyhow::Result<QuestionReply> {
    let found = ask_steps(run, first, second, &mut |progress| bar.report(&progress))?;
    let steps = (first as u64, second as u64);
    Ok(written(&format!("iteration {second} compared with iteration {first}"), run, run, found, Some(steps)))
}

pub(super) fn answer(before: &Run, after: &Run, bar: &Bar) -> anyhow::Result<QuestionReply> {
    let found = ask(before, after, &mut |progress| bar.report(&progress))?;
    Ok(written(&format!("compared with {}", before.name), before, after, found, None))
}

/// The reply with a difference, as text and as JSON.
fn written(
    compared: &str,
    before: &Run,
    after: &Run,
    found: Diff,
    steps: Option<(u64, u64)>,
) -> QuestionReply {
    let status = if found.is_same() { ExitStatus::Positive } else { ExitStatus::Negative };
    let text = text(compared, &found);
    let json = DiffAnswer {
        before: before.name.clone(),
        limit: after.implied_limit(),
        limit_before: before.implied_limit(),
        diff: found,
        steps,
    };
    QuestionReply { json: json.into(), text, status }
}

fn text(compared: &str, found: &Diff) -> String {
    let alignment = &found.alignment;
    let mut text = format!(
        "{compared}: {} allocations are the same, {} were removed, {} are new\n",
        grouped(alignment.same),
        grouped(alignment.only_before),
        grouped(alignment.only_after)
    );
    for (name, peak) in [("allocated", &found.allocated), ("reserved", &found.reserved)] {
        let change = signed(peak.change, grouped);
        let _ = writeln!(
            text,
            "  peak {name}: {} instead of {} ({change} bytes)",
            grouped(peak.after.get()),
            grouped(peak.before.get())
        );
        let lines = peak.by_line();
        for line in lines.iter().take(SHOWN_LINES) {
            // One call site has its stack; several of a line are summed, and JSON has each.
            let site = match line.sites.as_slice() {
                [site] => site.join(" < "),
                sites => format!("{}, {} call sites", line.line, sites.len()),
            };
            let (old, new) = (grouped(line.count_before), grouped(line.count_after));
            let _ = writeln!(
                text,
                "    {:>16}  {site} ({old} live before, {new} after)",
                signed(line.change, grouped)
            );
        }
        let rest = lines.iter().skip(SHOWN_LINES).map(|line| line.change).sum::<i64>();
        if lines.len() > SHOWN_LINES {
            let _ =
                writeln!(text, "    {:>16}  {} more lines", signed(rest, grouped), lines.len() - SHOWN_LINES);
        }
    }
    add_notes(&mut text, &found.notes);
    text
}
