//! The page itself.

use std::fmt::Write as _;

use blockyard_figure::typeface::FONT_FAMILY;
use blockyard_figure::{Series, theme_css};
use blockyard_lab::{Conditions, Run, verdict};
use blockyard_record::{PoolId, grouped, sentence};
use blockyard_replay::OnProgress;

use crate::html::{escaped, sentence_case};
use crate::moment::Moment;
use crate::settings::{self, Settings};
use crate::source::{ReportCertificate, ReportDevice, ReportFile};
use crate::verdict::{SIMULATED, VerdictPart, with_code};
use crate::{ReportError, ReportOptions, figures, holding_lines};

const STYLE: &str = include_str!("style.css");

/// Nothing is fetched from anywhere, and no script runs, whatever a name contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; form-action 'none'";

/// The version of Blockyard that a report names as its maker.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A device with the results of its examination.
struct ExaminedDevice<'a> {
    device: &'a ReportDevice,
    headline: String,
    body: String,
}

pub(crate) fn write(
    opened: &ReportFile,
    options: &ReportOptions,
    conditions_of: &dyn Fn(&Run) -> Conditions,
    on_progress: OnProgress,
) -> Result<String, ReportError> {
    let mut examined = Vec::with_capacity(opened.devices.len());
    for (place, device) in opened.devices.iter().enumerate() {
        examined.push(examine(place, device, options, conditions_of, on_progress)?);
    }
    let title = opened.name.as_deref().unwrap_or("A run");
    let mut out = String::new();
    write_head(&mut out, title, "");
    let _ = writeln!(
        out,
        "<header>\n<p class=\"quiet\">GPU memory report</p>\n<h1>{}</h1>\n</header>",
        escaped(title)
    );
    if examined.len() > 1 {
        write_contents(&mut out, &examined);
    }
    for (place, part) in examined.iter().enumerate() {
        let _ = writeln!(out, "<section id=\"part-{place}\">");
        if let Some(name) = &part.device.name {
            let _ = writeln!(out, "<p class=\"device\">{}</p>", escaped(&sentence_case(name)));
        }
        out.push_str(&part.body);
        out.push_str("</section>\n");
    }
    write_notes(&mut out, opened, options);
    if let Some(program) = &opened.program {
        let _ = writeln!(
            out,
            "<section>\n<details>\n<summary>The program</summary>\n<pre>{}</pre>\n</details>\n</section>",
            escaped(program)
        );
    }
    write_provenance(&mut out, opened, options);
    out.push_str("</main>\n</html>\n");
    Ok(out)
}

/// The beginning of a page, with further rules of style.
pub(crate) fn write_head(out: &mut String, title: &str, more_style: &str) {
    // Paper is white, whatever the screen is.
    let theme = theme_css()
        .replace("@media (prefers-color-scheme: dark)", "@media screen and (prefers-color-scheme: dark)");
    let style = STYLE.replace("FONT_FAMILY", FONT_FAMILY);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\" data-grey-states>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<meta name=\"generator\" \
         content=\"Blockyard {VERSION}\">\n<title>{} · GPU memory report</title>\n<style>\n{theme}{style}{more_style}</style>\n<main>\n",
        escaped(title)
    );
}

/// The verdict of each device, with a link to its part.
fn write_contents(out: &mut String, examined: &[ExaminedDevice<'_>]) {
    out.push_str("<nav aria-label=\"Devices\"><ul>\n");
    for (place, part) in examined.iter().enumerate() {
        let name = part.device.name.as_deref().unwrap_or("run");
        let _ = writeln!(
            out,
            "<li><a href=\"#part-{place}\">{}</a>: {}</li>",
            escaped(&sentence_case(name)),
            with_code(&part.headline)
        );
    }
    out.push_str("</ul></nav>\n");
}

fn examine<'a>(
    place: usize,
    device: &'a ReportDevice,
    options: &ReportOptions,
    conditions_of: &dyn Fn(&Run) -> Conditions,
    on_progress: OnProgress,
) -> Result<ExaminedDevice<'a>, ReportError> {
    let recording = &device.recording;
    let series = Series::new(recording);
    let moment = Moment::of(recording, &series)?;
    let held = holding_lines::held(recording, &moment, on_progress)?;
    let run = device.run.as_ref();
    let answers = match run {
        Ok(run) => {
            let conditions = conditions_of(run);
            let answer = verdict(run, &conditions, on_progress)?.answer;
            let tried = || settings::tried(run, &conditions, &options.tried, on_progress);
            Some((answer, run.has_requests().then(tried).transpose()?))
        }
        Err(_) => None,
    };
    let verdict = VerdictPart {
        device_index: place,
        recording,
        series: &series,
        moment: &moment,
        held: &held,
        answer: answers.as_ref().map(|(answer, _)| answer),
        settings: answers.as_ref().and_then(|(_, settings)| settings.as_ref()),
        certificate: &device.certificate,
    };
    let headline = verdict.headline();
    let mut body = format!("<h2>{}</h2>\n", with_code(&headline));
    verdict.write(&mut body);
    let pool_name =
        |pool_id: PoolId| run.ok().and_then(|run| run.workload().pool_name(pool_id)).map(str::to_owned);
    let shown = figures::DeviceFigures {
        device_index: place,
        recording,
        series: &series,
        moment: &moment,
        grows: verdict.growth(),
    };
    figures::write(&mut body, &shown, &pool_name);
    holding_lines::write(&mut body, place, recording, &moment, &held, !options.is_redacted);
    write_settings(
        &mut body,
        place,
        &run.err().map_or_else(|| NO_REQUESTS.to_owned(), ToString::to_string),
        answers.as_ref().and_then(|(_, settings)| settings.as_ref()),
    );
    write_certificate(&mut body, &device.certificate);
    let run_notes = run.map(Run::notes).unwrap_or_default();
    let of_certificate = &device.certificate.notes;
    write_unknown(&mut body, device.notes.iter().chain(run_notes.iter()).chain(of_certificate));
    Ok(ExaminedDevice { device, headline, body })
}

/// Why no setting was tried on a device whose snapshot has no trace.
const NO_REQUESTS: &str = "the snapshot has no requests";

fn write_settings(out: &mut String, place: usize, why_not: &str, settings: Option<&Settings>) {
    if let Some(settings) = settings {
        settings.write(out, place);
    } else {
        let _ = writeln!(
            out,
            "<h3>Settings tried</h3>\n<p>None: the requests cannot be replayed. {}</p>",
            escaped(&sentence(why_not))
        );
    }
}

fn write_certificate(out: &mut String, found: &ReportCertificate) {
    if found.is_simulated {
        let _ = writeln!(out, "<h3>How these numbers were made</h3>\n<p>{}</p>", escaped(SIMULATED));
        return;
    }
    out.push_str("<h3>Certificate</h3>\n");
    if found.headline.is_empty() {
        out.push_str("<p>There is no recorded run to compare with.</p>\n");
        return;
    }
    let class = if found.is_identical { "certificate" } else { "certificate differs" };
    let _ = writeln!(out, "<p class=\"{class}\"><strong>{}</strong></p>", escaped(&found.headline));
    out.push_str(
        "<p>Blockyard's allocator got the same requests and decided each placement again. The counts say how many of its \
         decisions are those of the file.</p>\n",
    );
    if let Some(difference) = &found.first_difference {
        let _ = writeln!(
            out,
            "<p>First difference, {}: PyTorch {}, replay {}.</p>",
            escaped(&difference.what),
            escaped(&difference.expected),
            escaped(&difference.found)
        );
    }
}

/// Writes the sentences about unknown facts, each sentence once.
fn write_unknown<'a>(out: &mut String, sentences: impl Iterator<Item = &'a String>) {
    let mut all: Vec<&String> = Vec::new();
    for text in sentences {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    if all.is_empty() {
        return;
    }
    out.push_str("<h3>What is not known</h3>\n<ul>\n");
    for text in all {
        let _ = writeln!(out, "<li>{}</li>", escaped(&sentence(text)));
    }
    out.push_str("</ul>\n");
}

fn write_notes(out: &mut String, opened: &ReportFile, options: &ReportOptions) {
    if !options.notes.is_empty() {
        out.push_str("<section>\n<h2>Notes</h2>\n");
        for note in &options.notes {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
        }
        out.push_str("</section>\n");
    }
    if !opened.notes.is_empty() {
        out.push_str("<section>\n<h2>Notes on the file</h2>\n<ul>\n");
        for note in &opened.notes {
            let _ = writeln!(out, "<li>{}</li>", escaped(&sentence(note)));
        }
        out.push_str("</ul>\n</section>\n");
    }
}

fn write_provenance(out: &mut String, opened: &ReportFile, options: &ReportOptions) {
    out.push_str("<section>\n<h2>Where these numbers come from</h2>\n<dl class=\"facts\">\n");
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(out, "<dt>{}</dt>\n<dd>{}</dd>", escaped(name), escaped(value));
    };
    fact("File", opened.name.as_deref().unwrap_or("its name is left out"));
    for (name, value) in &opened.facts {
        fact(name, value);
    }
    for device in &opened.devices {
        let name = device
            .name
            .as_deref()
            .map_or_else(|| "Requests".to_owned(), |name| format!("Requests of {name}"));
        let (steps, events) = (device.recording.step_count(), device.recording.event_count());
        fact(
            &name,
            &format!("{}, with {} events, splits and merges included", grouped(steps), grouped(events)),
        );
    }
    fact("Made by", &format!("Blockyard {VERSION}"));
    if options.is_redacted {
        fact("Left out", "stacks, and the names of functions, files and tensors; sizes are as they were");
    }
    out.push_str("</dl>\n</section>\n");
}
