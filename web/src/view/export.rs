//! Saves the shown view: figures as SVG and PNG, numbers as CSV and JSON, and makes the link to the view.

use std::fmt::Write as _;

use blockyard_figure::{
    Scene, ShownPart, Size, Theme, breakdown_text, figure_facts, timeline, timeline_text,
};
use blockyard_record::Recording;
use leptos::prelude::*;

use crate::browser;
use crate::canvas::{Paints, new_canvas};
use crate::lab::Sheet;
use crate::link::{Link, LinkTarget};
use crate::navigation::Place;
use crate::session::Session;
use crate::view::figure::allocations::whole_scene;
use crate::view::stage_scene;

/// The width of a figure in a file, and the height of one over time.
const WIDTH_PX: f32 = 1200.0;
const HEIGHT_PX: f32 = 420.0;

/// The name of a file: the page's heading in letters that every system accepts, followed by `ending`.
fn file_name(session: Session, ending: &str) -> String {
    let title = untrack(|| session.navigation().heading());
    let stem: String = title
        .chars()
        .map(|letter| if letter.is_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .collect();
    format!("{}{ending}", stem.trim_matches('-'))
}

/// An SVG file of more marks opens slowly, so that the states are drawn in place of the allocations.
const MAX_SVG_MARKS: usize = 50_000;

/// Memory over time as the page shows it: a file by its allocations or by its states, everything else by states.
fn over_time_scene(session: Session, is_svg: bool) -> Scene {
    let size = Size::new(WIDTH_PX, HEIGHT_PX);
    let groups = session.figures().color_groups().filter(|_| session.figures().shows_allocations());
    let allocations = groups.and_then(|groups| whole_scene(session, &groups, size));
    let is_small = |scene: &Scene| !is_svg || scene.marks.len() <= MAX_SVG_MARKS;
    allocations.filter(is_small).unwrap_or_else(|| {
        let (run, clock) = (session.run.get(), session.figures().clock.get());
        let view = session.figures().timeline_view_or_fit();
        timeline(&run.series, &run.recording, &view, clock.as_deref(), size)
    })
}

/// Saves the figure as a file: memory over time with the limit, and in a lesson the memory of the device. An SVG
/// file has a title, a description and the link; a PNG file has the page's colors.
pub(crate) fn save_figure(session: Session, is_svg: bool) {
    let is_run = matches!(session.navigation().place.get_untracked(), Place::Workbench | Place::Program);
    let run = session.run.get_untracked();
    let view = untrack(|| session.figures().timeline_view_or_fit());
    let steps = session.player.with_untracked(|player| player.steps);
    let (scene, heading, words) = if is_run {
        let scene = untrack(|| over_time_scene(session, is_svg));
        let heading = heading(session, "memory over time", ShownPart::of_view(&view));
        (Some(scene), heading, timeline_text(&run.series, &run.recording))
    } else {
        let words = untrack(|| session.with_state(|run, state| breakdown_text(state, &run.recording)));
        let heading = heading(session, "memory of the device", ShownPart::Moment(steps));
        (stage_scene(session, WIDTH_PX), heading, words.unwrap_or_default())
    };
    let Some(scene) = scene else { return };
    let (title, facts) = heading;
    let scene = scene.under_heading(&title, &facts);
    if is_svg {
        let words = format!("{words} {}. {}", facts.join(", "), link(session));
        let text = scene.to_svg(light_theme(session), &title, &words);
        return browser::download(&file_name(session, ".svg"), &text, "image/svg+xml");
    }
    match picture(&scene) {
        Some(url) => browser::download_url(&file_name(session, "@2x.png"), &url),
        None => session.show_error("This browser made no picture of the figure."),
    }
}

/// The colors of a figure on white, with the states as the page has them.
pub(crate) fn light_theme(session: Session) -> Theme {
    if untrack(|| session.figures().colors_blocks()) { Theme::LightFile } else { Theme::Light }
}

/// The title and the facts over a figure in a file.
type Heading = (String, Vec<String>);

/// The title and the facts of a figure of the shown run.
fn heading(session: Session, name: &str, part: ShownPart) -> Heading {
    let run = session.run.get_untracked();
    let title = format!("{}: {name}", untrack(|| session.navigation().heading()));
    (title, figure_facts(&run.series, &run.recording, part))
}

fn picture(scene: &Scene) -> Option<String> {
    let canvas = new_canvas()?;
    Paints::read_for(2.0).draw_on_ground(&canvas, scene);
    canvas.to_data_url_with_type("image/png").ok()
}

/// Saves the breakdown after each step as a CSV file.
pub(crate) fn csv(session: Session) {
    let run = session.run.get_untracked();
    browser::download(&file_name(session, ".csv"), &table(&run.recording), "text/csv");
}

fn table(recording: &Recording) -> String {
    let mut text = "step,label,requested,rounding,pending,cached,free,allocated,active,reserved\n".to_owned();
    let mut labels = recording.labels().iter().peekable();
    for (step, breakdown) in recording.breakdowns_from(0).enumerate() {
        let mut label = "";
        while let Some(next) = labels.next_if(|label| label.step as usize <= step) {
            label = &next.text;
        }
        let label = label.replace('"', "\"\"");
        let _ = writeln!(
            text,
            "{},\"{label}\",{},{},{},{},{},{},{},{}",
            step + 1,
            breakdown.requested.get(),
            breakdown.rounding.get(),
            breakdown.pending.get(),
            breakdown.cached.get(),
            breakdown.free.get(),
            breakdown.allocated().get(),
            breakdown.active().get(),
            breakdown.reserved().get(),
        );
    }
    text
}

/// Saves a table of the lab as a CSV file.
pub(crate) fn sheet(session: Session, kind: &str, sheet: &Sheet) {
    browser::download(&file_name(session, &format!("-{kind}.csv")), &sheet.to_csv(), "text/csv");
}

/// Saves a table of the lab as a JSON file with an object for each row.
pub(crate) fn sheet_json(session: Session, kind: &str, sheet: &Sheet) {
    browser::download(&file_name(session, &format!("-{kind}.json")), &sheet.to_json(), "application/json");
}

/// The address that shows the present view to other readers. No address can contain a file of the reader's;
/// the address is then that of the page alone, which opens nothing in place of the file.
pub(crate) fn link(session: Session) -> String {
    untrack(|| {
        let link = session.navigation().link();
        let mut link = if link.target.is_for_others() { link } else { Link::default() };
        // The figure beside an exercise shows the run of the reader's lines.
        let lines = session.lessons().state.with(|state| state.has_run().then(|| state.text.clone()));
        let is_lesson = session.open_lesson().is_some() && !matches!(link.target, LinkTarget::Place(_));
        if is_lesson && lines.is_some() {
            link.solution = lines;
        }
        let hash = link.write();
        let address = browser::address();
        if hash.is_empty() { address } else { format!("{address}#{hash}") }
    })
}

/// Whether other readers see the present view at [`link`].
pub(crate) fn has_link(session: Session) -> bool {
    untrack(|| session.navigation().link().target.is_for_others())
}

/// Saves the report about the shown run as an HTML file.
pub(crate) fn report(session: Session, html: &str, is_redacted: bool) {
    let name = if is_redacted { "report.html".to_owned() } else { file_name(session, "-report.html") };
    browser::download(&name, html, "text/html");
}
