//! The workbench: the text of a workload or an opened file, and its figures, questions and settings.

pub(crate) mod chosen;
pub(crate) mod divider;
pub(crate) mod editor;
pub(crate) mod gpu;
pub(crate) mod hand;
pub(crate) mod lab;
pub(crate) mod live;
pub(crate) mod opened;
pub(crate) mod panels;
pub(crate) mod player;
pub(crate) mod ranks;
pub(crate) mod settings;
pub(crate) mod statistic;
pub(crate) mod step;
pub(crate) mod tabs;

use divider::SizedPanel;
use leptos::prelude::*;

use crate::files::Samples;
use crate::session::Session;
use crate::view::figure::{allocations, map, stage, unplaced};
use crate::view::learn::term_row;
use crate::view::{header, kit, paper};

/// The figures beside the text and the numbers.
pub(crate) fn workbench(session: Session, samples: Samples) -> AnyView {
    let hidden = kit::text(move || session.workbench().panels.get().hidden_names());
    let alone = move || session.workbench().panels.get().alone.map(crate::workbench::WorkbenchPanel::name);
    session.figures().sheet.set_value(Some(paper::content));
    let is_file = Memo::new(move |_| session.shows_recording());
    // The verdict says what happened in a file, so that a file has no words about each step.
    let above_tabs = move || {
        if is_file.get() {
            return chosen::panel(session);
        }
        view! {
            {step::step(session)}
            {divider::divider(SizedPanel::Step)}
        }
        .into_any()
    };
    view! {
        <main
            class="workbench"
            class:shows-recording=kit::flag(move || session.shows_recording())
            class:shows-states=kit::flag(move || session.figures().is_by_state.get())
            data-hidden=hidden
            data-alone=alone
        >
            <h1 class="visually-hidden">"Workbench"</h1>
            <div class="figures" class:is-unplaced=kit::flag(move || unplaced::is_unplaced(session))>
                {lab::verdict_first(session)}
                {header::open_bar(session, samples)}
                {ranks::ranks(session)}
                {live::programs(session)}
                {unplaced::unplaced(session)}
                <section class="panel stage-panel" aria-labelledby="stage-title">
                    <h2 class="visually-hidden" id="stage-title">"Memory of the device"</h2>
                    {stage::stage(session, true)}
                    {term_row::compact(session)}
                </section>
                <section class="panel transport" aria-labelledby="run-title">
                    <h2 class="visually-hidden" id="run-title">"Run"</h2>
                    {player::over_time(session)}
                </section>
                {map::map(session)}
                {allocations::allocations(session)}
            </div>
            {divider::divider(SizedPanel::Side)}
            <div class="side">
                {above_tabs}
                {tabs::tabs(session)}
            </div>
        </main>
    }
    .into_any()
}
