//! What a hand does: pointer, keys, files.

use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::page::Page;

/// Keys without a letter, for [`Page::press`] and [`Page::press_with`].
pub mod key {
    /// The space bar.
    pub const SPACE: &str = " ";
    /// Back one letter.
    pub const BACKSPACE: &str = "\u{E003}";
    /// To the next control.
    pub const TAB: &str = "\u{E004}";
    /// Enter.
    pub const ENTER: &str = "\u{E007}";
    /// Shift, to hold.
    pub const SHIFT: &str = "\u{E008}";
    /// Control, to hold.
    pub const CONTROL: &str = "\u{E009}";
    /// Alt, to hold.
    pub const ALT: &str = "\u{E00A}";
    /// Escape.
    pub const ESCAPE: &str = "\u{E00C}";
    /// Up a page.
    pub const PAGE_UP: &str = "\u{E00E}";
    /// Down a page.
    pub const PAGE_DOWN: &str = "\u{E00F}";
    /// To the end.
    pub const END: &str = "\u{E010}";
    /// To the start.
    pub const HOME: &str = "\u{E011}";
    /// Left.
    pub const LEFT: &str = "\u{E012}";
    /// Up.
    pub const UP: &str = "\u{E013}";
    /// Right.
    pub const RIGHT: &str = "\u{E014}";
    /// Down.
    pub const DOWN: &str = "\u{E015}";
    /// Delete forward.
    pub const DELETE: &str = "\u{E017}";
}

/// Builds the events of a dropped file where the browser would: the drag itself cannot be driven from outside.
const DROP: &str = "
    const [css, name, base64] = arguments;
    const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([bytes], name));
    const target = document.querySelector(css);
    for (const type of ['dragenter', 'dragover', 'drop']) {
        target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, composed: true, dataTransfer }));
    }";

impl Page {
    /// Clicks the middle of `css`, which nothing may cover.
    ///
    /// # Errors
    /// Where no displayed element matches, or another one would get the click.
    pub fn click(&self, css: &str) -> Result<()> {
        let id = self.element(css)?;
        self.driver.post(&format!("/element/{id}/click"), &json!({})).map(drop)
    }

    /// Clicks `css` at a point, from its top left corner.
    ///
    /// # Errors
    /// Where no displayed element matches, or the point is outside the viewport.
    pub fn click_at(&self, css: &str, x: f64, y: f64) -> Result<()> {
        let start = self.viewport_point(css, x, y)?;
        self.pointer(&[
            start,
            json!({ "type": "pointerDown", "button": 0 }),
            json!({ "type": "pointerUp", "button": 0 }),
        ])
    }

    /// Moves the pointer over `css` at a point, from its top left corner.
    ///
    /// # Errors
    /// As [`Page::click_at`].
    pub fn hover_at(&self, css: &str, x: f64, y: f64) -> Result<()> {
        let point = self.viewport_point(css, x, y)?;
        self.pointer(&[point])
    }

    /// Drags over `css` from one point to another with the main button; both from its top left corner.
    ///
    /// # Errors
    /// As [`Page::click_at`].
    pub fn drag(&self, css: &str, from: (f64, f64), to: (f64, f64)) -> Result<()> {
        let start = self.viewport_point(css, from.0, from.1)?;
        let halfway = self.viewport_point(css, f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1))?;
        let end = self.viewport_point(css, to.0, to.1)?;
        let (down, up) =
            (json!({ "type": "pointerDown", "button": 0 }), json!({ "type": "pointerUp", "button": 0 }));
        self.pointer(&[start, down, halfway, end, up])
    }

    /// Turns the wheel over `css` at a point from its top left corner; `down` in pixels, negative is up.
    ///
    /// # Errors
    /// As [`Page::click_at`].
    pub fn wheel_at(&self, css: &str, x: f64, y: f64, down: i32) -> Result<()> {
        let mut point = self.viewport_point(css, x, y)?;
        point["type"] = json!("scroll");
        point["deltaX"] = json!(0);
        point["deltaY"] = json!(down);
        let wheel = json!({ "type": "wheel", "id": "wheel", "actions": [point] });
        self.driver.post("/actions", &json!({ "actions": [wheel] })).map(drop)
    }

    /// Types `text` into the field `css`, after what is there.
    ///
    /// # Errors
    /// Where no displayed element matches, or it takes no text.
    pub fn send_keys(&self, css: &str, text: &str) -> Result<()> {
        let id = self.element(css)?;
        self.driver.post(&format!("/element/{id}/value"), &json!({ "text": text })).map(drop)
    }

    /// Empties the field `css`, then types `text`.
    ///
    /// # Errors
    /// As [`Page::send_keys`].
    pub fn fill(&self, css: &str, text: &str) -> Result<()> {
        let id = self.element(css)?;
        self.driver.post(&format!("/element/{id}/clear"), &json!({}))?;
        self.driver.post(&format!("/element/{id}/value"), &json!({ "text": text })).map(drop)
    }

    /// Presses keys one after the other wherever the focus is; each letter of `keys` is one (see [`key`]).
    ///
    /// # Errors
    /// What the browser says.
    pub fn press(&self, keys: &str) -> Result<()> {
        self.press_with("", keys)
    }

    /// As [`Page::press`], while the keys of `held` are down.
    ///
    /// # Errors
    /// What the browser says.
    pub fn press_with(&self, held: &str, keys: &str) -> Result<()> {
        let down = |key: char| json!({ "type": "keyDown", "value": key.to_string() });
        let up = |key: char| json!({ "type": "keyUp", "value": key.to_string() });
        let mut actions: Vec<_> = held.chars().map(down).collect();
        actions.extend(keys.chars().flat_map(|key| [down(key), up(key)]));
        actions.extend(held.chars().rev().map(up));
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.driver.post("/actions", &json!({ "actions": [keyboard] })).map(drop)
    }

    /// A selector-like word for what has the focus: `button#play`, `body` where nothing has it.
    ///
    /// # Errors
    /// What the browser says.
    pub fn focused(&self) -> Result<String> {
        let script = "const it = document.activeElement ?? document.body;
            return it.localName + (it.id && '#' + it.id)";
        let focused = self.execute(script, &[])?;
        Ok(focused.as_str().context("nothing has the focus")?.to_owned())
    }

    /// Gives the file at `path` to the file field `css`, displayed or not.
    ///
    /// # Errors
    /// Where the file or the field is missing.
    pub fn upload(&self, css: &str, path: &Path) -> Result<()> {
        let path = path.canonicalize().with_context(|| format!("{} is missing", path.display()))?;
        self.wait_until(&format!("document.querySelector({})", json!(css)))?;
        let id = self.find(css)?;
        self.driver
            .post(&format!("/element/{id}/value"), &json!({ "text": path.display().to_string() }))
            .map(drop)
    }

    /// Drops a file called `name` on `css`.
    ///
    /// # Errors
    /// Where no displayed element matches.
    pub fn drop_file(&self, css: &str, name: &str, bytes: &[u8]) -> Result<()> {
        self.wait_for(css)?;
        self.execute(DROP, &[json!(css), json!(name), json!(STANDARD.encode(bytes))]).map(drop)
    }

    /// A move of the pointer to a point of `css`, as WebDriver writes it.
    fn viewport_point(&self, css: &str, x: f64, y: f64) -> Result<Value> {
        let rect = self.rect(css)?;
        // The driver takes the origin "element" from the middle of the visible part, which no caller knows.
        Ok(json!({
            "type": "pointerMove", "origin": "viewport", "duration": 0,
            "x": pixel(rect.x + x), "y": pixel(rect.y + y),
        }))
    }

    fn pointer(&self, actions: &[Value]) -> Result<()> {
        let mouse = json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": actions });
        self.driver.post("/actions", &json!({ "actions": [mouse] })).map(drop)
    }
}

/// The whole pixel that holds `position`: the driver takes no parts of one.
#[expect(clippy::cast_possible_truncation, reason = "no screen has two billion pixels")]
fn pixel(position: f64) -> i32 {
    position.floor() as i32
}
