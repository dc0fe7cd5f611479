//! The page inside another page. It has no header, it is as high as its content, and in a lower frame the bar
//! with the steps stays at the lower edge.

use blockyard_figure::PlayerAction;
use leptos::html;
use leptos::prelude::*;

use crate::browser;
use crate::effect::effect;
use crate::messages::sentence;
use crate::navigation::Embed;
use crate::session::Session;
use crate::surface;
use crate::view::figure::{scrubber, stage};
use crate::view::icon::Icon;
use crate::view::kit::{click, icon_button, play_button, text};
use crate::view::messages;
use crate::view::parts;
use crate::view::workbench::step::step_text;

/// A frame that is lower than this has a stage with fewer rows, as the style sheet has it.
const LOW_PX: f64 = 440.0;

pub(crate) fn embedded(session: Session, embed: Embed) -> AnyView {
    let area = NodeRef::<html::Div>::new();
    let size = surface::size_of(area);
    // The outer page may make the frame as high as the content.
    effect(move || {
        let height_px = size.get().height_px;
        if height_px > 1.0 {
            browser::post_height(f64::from(height_px));
        }
    });
    let content = match embed {
        Embed::Figure => view! { <main class="embedded">{stage::stage(session, false)}</main> }.into_any(),
        Embed::Stage => view! {
            <main class="embedded">
                {stage::stage(session, browser::window_size().1 < LOW_PX)}
                {caption(session)}
                {scrubber::scrubber(session)}
                {steps(session)}
            </main>
        }
        .into_any(),
        Embed::Lesson => parts::lesson(session),
    };
    view! {
        <div class="app is-embedded" node_ref=area>
            {messages::messages(session)}
            {content}
        </div>
        {messages::live_region(session)}
    }
    .into_any()
}

/// The play button, and the step under the cursor in words.
fn caption(session: Session) -> AnyView {
    let words = text(move || {
        let run = session.run.get();
        let count = run.recording.step_count();
        match session.player.with(|player| player.current_step(&run.recording)) {
            Some(step) => {
                let words = step_text(&run, step);
                format!("Request {} of {count}: {}. {}", step + 1, words.title, sentence(&words.sentence))
            }
            None => format!("An empty device, and {count} requests to come."),
        }
    });
    view! {
        <p class="caption">
            {play_button(session, ["Play", "Pause"])}
            <span data-testid="caption">{words}</span>
        </p>
    }
    .into_any()
}

fn steps(session: Session) -> AnyView {
    let position = text(move || {
        let count = session.run.get().recording.step_count();
        format!("request {} of {count}", session.player.with(|player| player.steps))
    });
    view! {
        <p class="cluster embed-bar">
            {icon_button("icon", "back", Icon::Back, "One request back", click(move || session.dispatch(PlayerAction::Back)))}
            {icon_button("icon", "forward", Icon::Forward, "One request forward", click(move || session.dispatch(PlayerAction::Forward)))}
            <span data-testid="position">{position}</span>
            <a
                href=text(move || crate::view::export::link(session))
                target="_blank"
                rel="noopener"
                hidden=browser::is_one_file()
            >
                "Open in Blockyard"
            </a>
        </p>
    }
    .into_any()
}
