//! The verdict: the event, its line, the certainty of the numbers, and the settings that help.

use std::fmt::Write as _;

use blockyard_figure::{Series, steps_at_allocation};
use blockyard_lab::{Finding, FindingTopic, MomentName, VerdictAnswer, VerdictMoment};
use blockyard_record::{Recording, counted, exact_size, grouped, sentence};
use blockyard_replay::placements_meaning;
use blockyard_rules::conf_text;

use crate::holding_lines::PlaceBytes;
use crate::html::{escaped, percent, sentence_case};
use crate::moment::{Moment, MomentKind};
use crate::settings::Settings;
use crate::source::ReportCertificate;

/// The facts that a verdict is made of.
pub(crate) struct VerdictPart<'a> {
    /// The number of the device in the report.
    pub(crate) device_index: usize,
    pub(crate) recording: &'a Recording,
    pub(crate) series: &'a Series,
    pub(crate) moment: &'a Moment,
    pub(crate) held: &'a [PlaceBytes],
    /// The verdict of the lab; `None` where the requests cannot be replayed.
    pub(crate) answer: Option<&'a VerdictAnswer>,
    /// The settings that were tried, as rows of a table below.
    pub(crate) settings: Option<&'a Settings>,
    pub(crate) certificate: &'a ReportCertificate,
}

impl VerdictPart<'_> {
    /// The verdict in a line, with lines of the program between backticks.
    pub(crate) fn headline(&self) -> String {
        if let Some(answer) = self.answer {
            return sentence_case(&answer.headline);
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

    pub(crate) fn write(&self, out: &mut String) {
        let findings = self.answer.iter().flat_map(|answer| &answer.findings);
        let links = |fix: &String| {
            findings.clone().find(|finding| finding.text == *fix).map(|finding| self.links(finding))
        };
        let fixes = self.answer.iter().flat_map(|answer| &answer.fixes);
        let fixes: Vec<String> =
            fixes.map(|fix| with_code(&sentence(fix)) + &links(fix).unwrap_or_default()).collect();
        if !fixes.is_empty() {
            let _ = writeln!(out, "<ol>\n<li>{}</li>\n</ol>", fixes.join("</li>\n<li>"));
        }
        out.push_str("<dl class=\"verdict\">\n");
        let mut sections = self.answer.map(VerdictAnswer::sections).into_iter().flatten();
        for about in FindingTopic::ALL {
            let findings = sections.next().map(|(_, findings)| findings).unwrap_or_default();
            let part = |finding: &Finding| with_code(&sentence(&finding.text)) + &self.links(finding);
            let mut parts: Vec<String> = findings.into_iter().map(part).collect();
            match about {
                FindingTopic::Happened => parts.insert(0, self.moment_sentence()),
                FindingTopic::Certainty => parts.extend(self.certainty()),
                _ => {}
            }
            if let [part] = parts.as_slice() {
                write_fact(out, about.title(), part);
            } else if !parts.is_empty() {
                write_fact(out, about.title(), &format!("<ul><li>{}</li></ul>", parts.join("</li><li>")));
            }
            if about == FindingTopic::Certainty {
                write_fact(out, "What held the memory", &self.first_holder());
            }
        }
        out.push_str("</dl>\n");
    }

    /// Links to where a sentence is shown, as HTML.
    fn links(&self, finding: &Finding) -> String {
        let place = self.device_index;
        let mut links = Vec::new();
        if let Some(moment) = finding.moments.first() {
            if let Some((first, last)) = self.steps(finding) {
                let (first, last) = (grouped(first), grouped(last));
                links.push(format!(
                    "<a href=\"#over-time-{place}\">from request {first} to request {last}</a>"
                ));
            } else if matches!(moment.name, MomentName::Failure | MomentName::Peak) {
                links.push(format!("<a href=\"#segments-{place}\">the segments then</a>"));
            }
        }
        let rows = finding.settings.iter().filter_map(|conf| Some((conf, self.settings?.row_of(conf)?)));
        // The sentence has the names of several settings.
        for (conf, row) in rows.take(1) {
            let is_alone = finding.settings.len() == 1;
            let name = if is_alone { escaped(conf_text(conf)) } else { "in the table".into() };
            links.push(format!("<a href=\"#setting-{place}-{row}\">{name}</a>"));
        }
        if links.is_empty() { String::new() } else { format!(" ({})", links.join(", ")) }
    }

    /// The first and the last step of the growth that a finding is about; `None` for other findings.
    fn steps(&self, finding: &Finding) -> Option<(usize, usize)> {
        let [first, last] = finding.moments.as_slice() else { return None };
        let step = |moment: &VerdictMoment| steps_at_allocation(self.recording, moment.allocations_after);
        Some((step(first)?, step(last)?))
    }

    /// The first and the last step of the growth from iteration to iteration; `None` if the lab found no
    /// growth.
    pub(crate) fn growth(&self) -> Option<(usize, usize)> {
        let mut findings = self.answer?.findings.iter();
        self.steps(findings.find(|finding| finding.about == FindingTopic::Grows)?)
    }

    /// The memory of the moment that the report is about.
    fn moment_sentence(&self) -> String {
        let breakdown = self.moment.state.breakdown();
        let (allocated, reserved) = (exact_size(breakdown.allocated()), exact_size(breakdown.reserved()));
        match self.moment.kind {
            MomentKind::OutOfMemory => {
                let replayed = match self.answer {
                    Some(answer) if answer.cause.is_none() => "; a replay of its requests does not",
                    _ => "",
                };
                format!(
                    "Request {} of the recording ran out of memory{replayed}. {allocated} were allocated and {reserved} reserved.",
                    grouped(self.moment.steps)
                )
            }
            MomentKind::Peak => {
                let (_, most_reserved) = self.series.peak_bytes(self.recording);
                format!(
                    "Most was allocated after request {} of {}: {allocated}, while {reserved} were \
                     reserved. The most that was ever reserved is {}.",
                    grouped(self.moment.steps),
                    grouped(self.recording.step_count()),
                    exact_size(most_reserved)
                )
            }
            MomentKind::Only => {
                format!("When the snapshot was taken, {allocated} were allocated and {reserved} reserved.")
            }
        }
    }

    /// The line that holds most.
    fn first_holder(&self) -> String {
        let allocated = self.moment.state.breakdown().allocated();
        let Some(first) = self.held.first() else { return "Nothing is allocated.".to_owned() };
        format!(
            "Most is held by <code>{}</code>: {}, {} of what is allocated {}. <a href=\"#holders-{}\">All of them</a>.",
            escaped(&first.text(self.recording)),
            exact_size(first.bytes),
            escaped(&percent(first.bytes, allocated)),
            self.moment.when(),
            self.device_index
        )
    }

    /// The sentences about the certainty of the replays, as HTML.
    fn certainty(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let certificate = self.certificate;
        if certificate.is_simulated {
            parts.push(SIMULATED.to_owned());
        } else if certificate.headline.is_empty() {
            parts.push("There is no recorded run to compare with.".to_owned());
        } else {
            parts.push(sentence(&placements_meaning(certificate.is_identical, &certificate.headline)));
        }
        if self.recording.open_sizes().len() > 0 {
            parts.push(format!(
                "The sizes of {} are not in the file; the smallest possible ones are assumed.",
                counted(self.recording.open_sizes().len(), "block")
            ));
        }
        parts.iter().map(|part| escaped(part)).collect()
    }
}

/// The sentence about the certainty of a simulation.
pub(crate) const SIMULATED: &str = "Simulated: the program ran in Blockyard's own PyTorch, without a GPU, so no real run exists to compare \
     with. Operators and the allocator are compared with recordings of NVIDIA GPUs; estimates are listed below.";

/// A sentence with lines of the program between backticks, as HTML.
pub(crate) fn with_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (place, part) in text.split('`').enumerate() {
        let part = escaped(part);
        if place % 2 == 1 {
            let _ = write!(out, "<code>{part}</code>");
        } else {
            out.push_str(&part);
        }
    }
    out
}

/// `what` is HTML.
fn write_fact(out: &mut String, name: &str, what: &str) {
    let _ = writeln!(out, "<dt>{name}</dt>\n<dd>{what}</dd>");
}
