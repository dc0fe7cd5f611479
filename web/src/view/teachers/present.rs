//! The page for teachers about presenting.

use blockyard_lessons::{PLANS, course};
use leptos::prelude::*;

use super::{choice, cluster, marked};
use crate::session::Session;
use crate::view::kit::{button, click};

/// The keys of a presentation, and what a class sees.
const IN_THE_ROOM: &str = "<dl class=\"glossary\" data-testid=\"in-the-room\">
<dt>Page down, Space, a clicker</dt><dd>First the answer to a question, then the next card, then the next lesson. <b>Page up</b> goes back. Homework is left out.</dd>
<dt>N: speaker's window</dt><dd>A second window with the answer, your notes, the next card and the clock. Move it to your own screen; then <b>F</b> gives the first the whole screen \
again. The class never sees it.</dd>
<dt>Q: QR code</dt><dd>Phones open the card on the screen. Each phone says at once whether its answer is right. Count hands: the page has no server, so no answer reaches you.</dd>
<dt>B, T, Escape</dt><dd>A dark screen, until any key. The clock shown or hidden. The end.</dd></dl>";

pub(super) fn present(session: Session) -> Vec<AnyView> {
    let chosen = RwSignal::new(PLANS.first().map_or_else(String::new, |plan| plan.id.to_owned()));
    let plans = PLANS.iter().map(|plan| (plan.id.to_owned(), plan.title.to_owned()));
    let lessons = course().map(|lesson| (lesson.id.to_owned(), lesson.title.to_owned()));
    let options = plans.chain(lessons).collect();
    let start = click(move || {
        let id = chosen.get_untracked();
        let plan = PLANS.iter().find(|plan| plan.id == id);
        session.lessons().present_plan(match plan {
            Some(plan) => plan.ids(),
            None => vec![id],
        });
    });
    vec![
        cluster(vec![
            choice("present-what", "What to present", options, chosen),
            button("primary large", "present-chosen", "Present", "The whole screen", start),
        ]),
        offline_line(),
        marked(IN_THE_ROOM.to_owned()),
    ]
}

/// Whether the browser has stored the page; `web/offline.js` says so at the root of the page.
fn offline_line() -> AnyView {
    view! {
        <p class="offline" role="status" data-testid="offline">
            <b class="is-ready done">"✓ Ready offline: this browser has stored the page, the lessons and Python."</b>
            <b class="is-storing">"Storing for offline use …"</b>
            <span class="is-none">"This browser does not store the page."</span>
        </p>
    }
    .into_any()
}
