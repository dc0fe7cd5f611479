//! The sheet of the workbench for paper: figures as SVG, under the name of the file.
//!
//! A canvas that the browser scales for paper is empty or blurred, and its figure would be as wide as the
//! screen. So the sheet is made when the browser is about to print, and takes the place of the workbench
//! until it has printed.

use std::fmt::Write as _;

use blockyard_figure::{
    Mark, Size, breakdown_text, escaped, timeline, timeline_cursor, timeline_plot, timeline_text,
};
use leptos::prelude::*;

use crate::browser;
use crate::files::ComparisonState;
use crate::navigation::Place;
use crate::numbers::grouped_count;
use crate::session::Session;
use crate::view::export::light_theme;
use crate::view::stage_scene;

/// Figures are laid out for a sheet of paper, and scaled to it.
pub(crate) const WIDTH_PX: f32 = 900.0;
const TIMELINE_PX: f32 = 300.0;

/// The most lines of a workload that are printed.
const MAX_LINES: usize = 400;

/// The attribute of the page's root while the sheet is shown.
const ATTRIBUTE: &str = "data-paper";

/// The empty sheet.
pub(crate) fn sheet() -> AnyView {
    view! { <div class="paper" data-testid="paper"></div> }.into_any()
}

/// Fills the sheet, or empties it again. The sheet is complete when this function returns, since the browser
/// prints as soon as the event has been handled.
pub(crate) fn turn(session: Session, is_paper: bool) {
    let (Some(sheet), Some(root)) = (browser::find(".paper"), browser::root()) else { return };
    let is_workbench = session.navigation().place.with_untracked(|place| *place == Place::Workbench);
    let make = session.figures().sheet.get_value().filter(|_| is_paper && is_workbench);
    let content = make.map(|make| untrack(|| make(session)));
    let _ = match &content {
        Some(_) => root.set_attribute(ATTRIBUTE, ""),
        None => root.remove_attribute(ATTRIBUTE),
    };
    sheet.set_inner_html(content.as_deref().unwrap_or_default());
}

/// The sheet as HTML.
pub(crate) fn content(session: Session) -> String {
    let run = session.run.get();
    let recording = &run.recording;
    let title = session.navigation().heading();
    let steps = session.player.with(|player| player.steps);
    let mut out = format!("<h1>{}</h1>", escaped(&title));
    if let Some(opened) = session.shown_recording()
        && let ComparisonState::Done(comparison) = opened.comparison.get()
    {
        let _ = write!(out, "<p>{}</p>", escaped(&comparison.headline()));
    }
    if !recording.info().conf.is_empty() {
        let _ = write!(out, "<p>PYTORCH_CUDA_ALLOC_CONF={}</p>", escaped(&recording.info().conf));
    }
    let size = Size::new(WIDTH_PX, TIMELINE_PX);
    let view = session.figures().timeline_view_or_fit();
    let mut scene = timeline(&run.series, recording, &view, None, size);
    // The cursor's line is drawn without the number of its step, which the caption has and which would cover
    // a number of the axis.
    let plot = timeline_plot(&run.series, size);
    let cursor = timeline_cursor(Some(recording), &scene, &plot, &view, None, steps).marks;
    scene.marks.extend(cursor.into_iter().filter(|mark| matches!(mark, Mark::Line { .. })));
    let words = timeline_text(&run.series, recording);
    let of_all = format!("request {} of {}", grouped_count(steps), grouped_count(recording.step_count()));
    let svg = scene.to_svg(light_theme(session), &format!("{title}: memory over time"), &words);
    let _ = write!(
        out,
        "<figure><h2>Memory over time</h2>{svg}<figcaption>The line is at {of_all}.</figcaption></figure>"
    );
    if let Some(part) = session.figures().paper.get_value() {
        out.push_str(&part(session, &title));
    }
    let words = session.with_state(|run, state| breakdown_text(state, &run.recording)).unwrap_or_default();
    if let Some(scene) = stage_scene(session, WIDTH_PX) {
        let svg = scene.to_svg(light_theme(session), &format!("{title}: memory of the device"), &words);
        let _ = write!(
            out,
            "<figure><h2>Memory of the device after {of_all}</h2>{svg}<figcaption>{}</figcaption></figure>",
            escaped(&words)
        );
    }
    if session.shows_text() {
        let text = session.workload().history.with(|history| history.text().to_owned());
        let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
        let _ = write!(out, "<h2>Workload</h2><pre>{}</pre>", escaped(&lines.join("\n")));
    }
    out
}
