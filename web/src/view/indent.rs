//! Indentation in the text fields for programs: Enter keeps it and raises it after a colon, and Tab writes it.

use leptos::ev;
use wasm_bindgen::JsCast;
use web_sys::HtmlTextAreaElement;

use crate::browser;

const INDENT: &str = "    ";

/// The mark of a field whose last key was Escape: the next Tab leaves the field, for people without a pointer.
const LEAVES: &str = "data-tab-leaves";

/// Handles Enter and Tab in a text field, unless another handler did.
pub(super) fn key(event: &ev::KeyboardEvent) {
    let area = browser::target_of(event).and_then(|target| target.dyn_into::<HtmlTextAreaElement>().ok());
    let Some(area) = area.filter(|_| !event.default_prevented() && !event.is_composing()) else { return };
    let leaves = area.has_attribute(LEAVES);
    let _ = area.toggle_attribute_with_force(LEAVES, event.key() == "Escape");
    if event.ctrl_key() || event.meta_key() || event.alt_key() || event.shift_key() {
        return;
    }
    let units: Vec<u16> = area.value().encode_utf16().collect();
    let place = |place: Result<Option<u32>, _>| place.ok().flatten().unwrap_or(0) as usize;
    let (start, end) = (place(area.selection_start()), place(area.selection_end()));
    let words =
        |range: std::ops::Range<usize>| units.get(range).map(String::from_utf16_lossy).unwrap_or_default();
    let (before, selected) = (words(0..start), words(start..end));
    let line = before.rsplit('\n').next().unwrap_or_default();
    let typed = match event.key().as_str() {
        "Enter" => format!("\n{}", next_indent(line)),
        "Tab" if !leaves && selected.contains('\n') => {
            // The lines of the selection are moved as wholes.
            let from = start.saturating_sub(line.encode_utf16().count());
            let _ = area.set_selection_start(u32::try_from(from).ok());
            format!("{INDENT}{}", words(from..end).replace('\n', &format!("\n{INDENT}")))
        }
        "Tab" if !leaves => INDENT.to_owned(),
        _ => return,
    };
    // The browser writes a line break without indentation itself.
    if typed != "\n" {
        event.prevent_default();
        browser::insert_text(&typed);
    }
}

/// The indentation of the line after this one.
fn next_indent(line: &str) -> String {
    let own: String = line.chars().take_while(|letter| *letter == ' ').collect();
    let code = line.split('#').next().unwrap_or_default().trim_end();
    if code.ends_with([':', '{']) { own + INDENT } else { own }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn a_colon_and_a_brace_raise_the_indentation() {
        let lines = ["x = 1", "    y = 2", "for a in b:  # all", "  if x:", "repeat 3 as i {", "  # so:"];
        assert_eq!(lines.map(|line| next_indent(line).len()), [0, 4, 4, 6, 4, 2]);
    }
}
