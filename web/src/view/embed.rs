//! The page inside another page. It has no header and nothing that stays in place while the reader scrolls, and it is as high as
//! its content.

use blockyard_figure::PlayerAction;
use leptos::html;
use leptos::prelude::*;

use crate::browser;
use crate::session::{Embed, Session};
use crate::view::icon::Icon;
use crate::view::kit::{click, effect, icon_button, text};
use crate::view::{home, messages, scrubber, stage};
use crate::{parts, surface};

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
                {stage::stage(session, false)}
                {home::caption(session)}
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

fn steps(session: Session) -> AnyView {
    let position = text(move || {
        let count = session.run.get().recording.step_count();
        format!("step {} of {count}", session.player.with(|player| player.steps))
    });
    view! {
        <p class="cluster">
            {icon_button("icon", "back", Icon::Back, "One step back", click(move || session.dispatch(PlayerAction::Back)))}
            {icon_button("icon", "forward", Icon::Forward, "One step forward", click(move || session.dispatch(PlayerAction::Forward)))}
            <span data-testid="position">{position}</span>
            <a
                href=text(move || crate::export::link(session))
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
