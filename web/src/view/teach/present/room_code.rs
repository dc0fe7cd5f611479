//! A QR code that leads a class to the card on the screen.
//!
//! The page has no server, so the answers of phones reach nobody: each phone says whether its answer is
//! right, and the speaker counts hands.

use std::fmt::Write as _;

use blockyard_figure::escaped;
use blockyard_lessons::without_solutions;
use leptos::prelude::*;
use qrcode::{Color, EcLevel, QrCode};

use crate::browser;
use crate::lessons::OverCard;
use crate::link::{Link, LinkTarget};
use crate::session::Session;
use crate::view::kit::flag;

/// Phones do not read the code of a longer address from the last row.
pub(crate) const MAX_CODE_CHARS: usize = 300;
/// The empty border that a code needs, in its modules.
const BORDER: usize = 4;

/// The keys of a presentation.
const KEYS: &str = "<dl class=\"facts\" data-testid=\"present-keys\">
<dt>Page down, Space</dt><dd>on</dd><dt>Page up</dt><dd>back</dd>
<dt>S, then arrows</dt><dd>slider</dd><dt>N</dt><dd>speaker's window</dd>
<dt>Q</dt><dd>QR code of the card</dd><dt>F</dt><dd>whole screen</dd>
<dt>B</dt><dd>dark screen</dd><dt>T</dt><dd>clock</dd>
<dt>Escape</dt><dd>end</dd><dt>?</dt><dd>this list</dd></dl>";

/// The code or the keys over the figure, beside the question.
pub(crate) fn room_code(session: Session) -> AnyView {
    let over = Memo::new(move |_| session.lessons().extras.with(|extras| extras.over));
    let content = move || match over.get() {
        OverCard::Nothing => String::new(),
        OverCard::Code => content(&address(session)),
        OverCard::Keys => KEYS.to_owned(),
    };
    view! {
        <section class="room-code" role="status" data-testid="room-code" hidden=flag(move || over.get() == OverCard::Nothing) inner_html=content></section>
    }
    .into_any()
}

/// The address of the card without the answer and without solutions. Reads signals.
pub(super) fn address(session: Session) -> String {
    let mut link = Link { revealed: None, step: None, solution: None, ..session.navigation().link() };
    if let LinkTarget::LessonText { text, is_for_class, .. } = &mut link.target {
        (*text, *is_for_class) = (without_solutions(text), true);
    }
    format!("{}#{}", browser::address(), link.write())
}

/// The code of an address with the address below it, as HTML.
pub(super) fn content(address: &str) -> String {
    let code = Some(address).filter(|address| address.len() <= MAX_CODE_CHARS);
    let Some(svg) = code.and_then(svg) else {
        return "<p>This link has a lesson in it, and is too long for a code. Send the link or the file. On a web server (<code>blockyard site</code>) the file has a short link with a code.</p>".to_owned();
    };
    let warning = if is_of_this_machine(address) {
        "<p><b>Phones cannot open this address: it is of this machine alone.</b> Open the page from a web server.</p>"
    } else {
        ""
    };
    format!("{svg}<p>{}</p>{warning}", escaped(address))
}

/// Whether no other machine can open the address.
pub(crate) fn is_of_this_machine(address: &str) -> bool {
    ["//127.", "//localhost", "//[::1]", "file:"].iter().any(|host| address.contains(host))
}

/// The code as SVG, dark on light in each theme.
fn svg(text: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let (width, colors) = (code.width(), code.to_colors());
    let size = width + 2 * BORDER;
    let dark = colors.iter().enumerate().filter(|(_, color)| **color == Color::Dark);
    let mut path = String::new();
    for (at, _) in dark {
        let _ = write!(path, "M{} {}h1v1h-1z", at % width + BORDER, at / width + BORDER);
    }
    Some(format!(
        "<svg viewBox=\"0 0 {size} {size}\" role=\"img\" aria-label=\"QR code\" shape-rendering=\"crispEdges\">\
         <path fill=\"#fff\" d=\"M0 0h{size}v{size}H0z\"/><path d=\"{path}\"/></svg>"
    ))
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn an_address_is_a_code_and_a_long_one_says_what_to_do() {
        let short = content("https://a.example/#lesson=reserved&card=2");
        // Version 3 has 29 modules, and a border of 4 on each side.
        assert!(
            short.contains("viewBox=\"0 0 37 37\"") && short.contains("lesson=reserved&amp;card=2</p>"),
            "{short}"
        );
        assert!(!short.contains("Phones cannot"));
        assert!(
            content("http://127.0.0.1:8080/#lesson=reserved&card=2")
                .contains("Phones cannot open this address")
        );
        assert!(content(&"x".repeat(301)).contains("too long for a code"));
    }
}
