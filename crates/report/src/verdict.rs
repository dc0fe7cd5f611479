//! The verdict: what happened, where, how sure that is, and what helps.

use std::fmt::Write as _;

use blockyard_figure::Series;
use blockyard_lab::{Autopsy, Conditions, LabError, Leaks, Run, autopsy, leaks};
use blockyard_record::{Bytes, Recording, counted, grouped};
use blockyard_replay::OnProgress;

use crate::holders::Held;
use crate::html::{escaped, exact, sentence, share};
use crate::moment::{Moment, MomentKind};
use crate::sites::{frame_words, own_line, without_empty_place};
use crate::source::Certified;

/// How many changes and how many places that grow are listed.
const SHOWN: usize = 4;

/// What the lab says about a run.
pub(crate) struct Asked {
    pub(crate) autopsy: Option<Autopsy>,
    pub(crate) leaks: Option<Leaks>,
}

impl Asked {
    pub(crate) fn of(run: &Run, conditions: &Conditions, on_progress: OnProgress) -> Result<Self, LabError> {
        let autopsy = autopsy(run, conditions, on_progress)?;
        let leaks = leaks(run, on_progress)?;
        Ok(Self { autopsy, leaks: Some(leaks).filter(|leaks| !leaks.growing.is_empty()) })
    }
}

/// The facts that a verdict is made of.
pub(crate) struct Verdict<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) series: &'a Series,
    pub(crate) moment: &'a Moment,
    pub(crate) held: &'a [Held],
    pub(crate) asked: Option<&'a Asked>,
    pub(crate) certificate: &'a Certified,
}

impl Verdict<'_> {
    /// The verdict in a line.
    pub(crate) fn headline(&self) -> String {
        if let Some(found) = self.autopsy() {
            let request = &found.request;
            let name = request.name.as_ref().map_or_else(String::new, |name| format!(" for {name}"));
            return format!(
                "Out of memory: request {} asked for {}{name}",
                grouped(request.request),
                request.size
            );
        }
        let breakdown = self.moment.state.breakdown();
        let (allocated, reserved) = (breakdown.allocated(), breakdown.reserved());
        match self.moment.kind {
            MomentKind::OutOfMemory => "Out of memory".to_owned(),
            MomentKind::Peak => {
                format!("At its peak the run had {allocated} allocated of {reserved} reserved")
            }
            MomentKind::Only => format!("{allocated} allocated of {reserved} reserved"),
        }
    }

    fn autopsy(&self) -> Option<&Autopsy> {
        self.asked.and_then(|asked| asked.autopsy.as_ref())
    }

    pub(crate) fn write(&self, out: &mut String) {
        out.push_str("<dl class=\"verdict\">\n");
        fact(out, "What happened", &self.what_happened());
        fact(out, "Where", &self.place());
        if let Some(growth) = self.growth() {
            fact(out, "What grows", &growth);
        }
        if let Some(help) = self.help() {
            fact(out, "What helps", &help);
        }
        fact(out, "How sure", &self.how_sure());
        out.push_str("</dl>\n");
    }

    fn what_happened(&self) -> String {
        let breakdown = self.moment.state.breakdown();
        if let Some(found) = self.autopsy() {
            let memory = &found.memory;
            return format!(
                "{} At that moment {} were reserved, of which {} were live; {} were cached for this stream.",
                escaped(&sentence(&found.sentence)),
                exact(memory.reserved),
                exact(memory.live),
                exact(memory.cached_here),
            );
        }
        let (allocated, reserved) = (exact(breakdown.allocated()), exact(breakdown.reserved()));
        match self.moment.kind {
            MomentKind::OutOfMemory => format!(
                "Step {} of the recording ran out of memory; a replay of its requests does not. {allocated} were allocated and \
                 {reserved} reserved.",
                grouped(self.moment.steps as u64)
            ),
            MomentKind::Peak => {
                let (_, most_reserved) = self.series.peak_bytes(self.recording);
                format!(
                    "The run did not go out of memory. Most was allocated after step {} of {}: {allocated}, while {reserved} were \
                     reserved. The most that was ever reserved is {}.",
                    grouped(self.moment.steps as u64),
                    grouped(self.recording.step_count() as u64),
                    exact(most_reserved)
                )
            }
            MomentKind::Only => {
                format!("When the snapshot was taken, {allocated} were allocated and {reserved} reserved.")
            }
        }
    }

    /// The line that asked, or the line that holds most.
    fn place(&self) -> String {
        let mut out = String::new();
        if let Some(line) = self.autopsy().and_then(|found| own_line(&found.request.stack)) {
            let _ = write!(out, "The request came from {}. ", code(line));
        }
        let allocated = self.moment.state.breakdown().allocated();
        match self.held.first() {
            Some(first) => {
                let _ = write!(
                    out,
                    "Most is held by <code>{}</code>: {}, {} of what is allocated {}.",
                    escaped(&first.text(self.recording)),
                    exact(first.bytes),
                    escaped(&share(first.bytes, allocated)),
                    self.moment.when()
                );
            }
            None => out.push_str("Nothing is allocated."),
        }
        out
    }

    /// The lines of the program whose live bytes grow, each once.
    fn growth(&self) -> Option<String> {
        let leaks = self.asked?.leaks.as_ref()?;
        let mut lines: Vec<(&str, Bytes)> = Vec::new();
        for growth in &leaks.growing {
            let line = own_line(&growth.site).unwrap_or("no stack was recorded");
            match lines.iter_mut().find(|(known, _)| *known == line) {
                Some((_, bytes)) => *bytes = bytes.saturating_add(growth.growth),
                None => lines.push((line, growth.growth)),
            }
        }
        lines.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let mut out = format!("Over {}:", counted(leaks.boundaries.len(), "step"));
        let shown = lines.iter().take(SHOWN);
        list(
            &mut out,
            shown.map(|(line, bytes)| {
                format!("{} holds {} more at the end than at the beginning", code(line), exact(*bytes))
            }),
        );
        Some(out)
    }

    /// Changes that a replay proved.
    fn help(&self) -> Option<String> {
        let found = self.autopsy()?;
        if found.changes.is_empty() {
            return Some("No change that was replayed lets the request pass.".to_owned());
        }
        let mut out = "Each proved by a replay:".to_owned();
        let changes = found.changes.iter().take(SHOWN);
        list(&mut out, changes.map(|change| escaped(&without_empty_place(&change.sentence))));
        if !found.in_vain.is_empty() {
            out.push_str("<p>Replayed in vain:</p>");
            let in_vain = found.in_vain.iter().take(SHOWN);
            list(&mut out, in_vain.map(|change| escaped(&without_empty_place(&change.sentence))));
        }
        Some(out)
    }

    fn how_sure(&self) -> String {
        let mut parts = Vec::new();
        if let Some(found) = self.autopsy() {
            parts.push(sentence(&found.limit.sentence()));
        }
        let certificate = self.certificate;
        if certificate.headline.is_empty() {
            parts.push("There is no recorded run to compare with.".to_owned());
        } else if certificate.is_identical {
            parts.push(format!(
                "Blockyard's allocator, which decided each request again, made the same decisions as PyTorch: {}.",
                certificate.headline
            ));
        } else {
            parts.push(format!(
                "Blockyard's allocator did not make all decisions as PyTorch did ({}), so what it says about other settings is an \
                 estimate.",
                certificate.headline
            ));
        }
        if self.recording.open_sizes().len() > 0 {
            parts.push(format!(
                "The sizes of {} are not in the file; the smallest possible ones are assumed.",
                counted(self.recording.open_sizes().len(), "block")
            ));
        }
        escaped(&parts.join(" "))
    }
}

fn code(line: &str) -> String {
    format!("<code>{}</code>", escaped(&frame_words(line)))
}

/// `what` is HTML.
fn fact(out: &mut String, name: &str, what: &str) {
    let _ = writeln!(out, "<dt>{name}</dt>\n<dd>{what}</dd>");
}

/// The items are HTML.
fn list(out: &mut String, items: impl Iterator<Item = String>) {
    out.push_str("<ul>");
    for item in items {
        let _ = write!(out, "<li>{item}</li>");
    }
    out.push_str("</ul>");
}
