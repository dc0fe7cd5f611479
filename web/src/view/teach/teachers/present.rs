//! The page for teachers about presenting.

use leptos::prelude::*;

use super::{class_buttons, class_line, marked};
use crate::session::Session;

/// The keys of a presentation, and what a class sees.
const IN_THE_ROOM: &str = "<dl class=\"glossary\" data-testid=\"in-the-room\">
<dt>Page down, Space, a clicker</dt><dd>The end of a card that plays, the answer to a question, the next card, the next lesson. <b>Page up</b> goes back. Homework is left out.</dd>
<dt>S: slider</dt><dd>Then the arrow keys move it, and the figure and the sentence move with it. With Shift, one place at a time.</dd>
<dt>N: speaker's window</dt><dd>A second window with the answer and its reason, the hints, common mistakes and a solution of an exercise, the words of the card, the next card and the clock. Move it to your own screen; then <b>F</b> gives the first the whole screen \
again. The class never sees it.</dd>
<dt>Q: QR code</dt><dd>Phones open the card on the screen. Each phone says at once whether its answer is right. Count hands: the page has no server, so no answer reaches you.</dd>
<dt>B, T, Escape</dt><dd>A dark screen, until any key. The clock shown or hidden. The end; Escape over the code or the keys closes them alone.</dd>
<dt>?</dt><dd>All keys, until the next key. A reload of the page goes on with the presentation; F gives it the whole screen again.</dd></dl>
<p class=\"quiet\">\"Present\" in a lesson presents that lesson from its card, with its sliders where they stand.</p>";

pub(super) fn present(session: Session) -> Vec<AnyView> {
    vec![class_line(session), class_buttons(session), offline_line(), marked(IN_THE_ROOM.to_owned())]
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
