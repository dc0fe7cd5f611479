//! The actions of a hand: pointer, keys, files.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use thirtyfour::action_chain::ActionChain;
use thirtyfour::{Key, TypingData};

use crate::driver::answer;
use crate::page::Page;

/// Builds the events of a dropped file where the browser would: the drag itself cannot be driven from
/// outside.
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
    /// Where no displayed element matches, or another element would get the click.
    pub fn click(&self, css: &str) -> Result<()> {
        self.with_element(css, |element| answer(element.click()))
    }

    /// Clicks `css` at a point, from its top left corner.
    ///
    /// # Errors
    /// Where no displayed element matches, or the point is outside the viewport.
    pub fn click_at(&self, css: &str, x: f64, y: f64) -> Result<()> {
        let (x, y) = self.viewport_point(css, x, y)?;
        self.act(|hand| hand.move_to(x, y).click())
    }

    /// Moves the pointer over `css` at a point, from its top left corner.
    ///
    /// # Errors
    /// The errors of [`Page::click_at`].
    pub fn hover_at(&self, css: &str, x: f64, y: f64) -> Result<()> {
        let (x, y) = self.viewport_point(css, x, y)?;
        self.act(|hand| hand.move_to(x, y))
    }

    /// Drags over `css` from one point to another with the main button; both from its top left corner.
    ///
    /// # Errors
    /// The errors of [`Page::click_at`].
    pub fn drag(&self, css: &str, from: (f64, f64), to: (f64, f64)) -> Result<()> {
        let start = self.viewport_point(css, from.0, from.1)?;
        let halfway = self.viewport_point(css, f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1))?;
        let end = self.viewport_point(css, to.0, to.1)?;
        self.act(|hand| {
            let hand = hand.move_to(start.0, start.1).click_and_hold();
            hand.move_to(halfway.0, halfway.1).move_to(end.0, end.1).release()
        })
    }

    /// Drags as [`Page::drag`] does, while the key `held` is down.
    ///
    /// # Errors
    /// The errors of [`Page::click_at`].
    pub fn drag_with(&self, held: &Key, css: &str, from: (f64, f64), to: (f64, f64)) -> Result<()> {
        let start = self.viewport_point(css, from.0, from.1)?;
        let halfway = self.viewport_point(css, f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1))?;
        let end = self.viewport_point(css, to.0, to.1)?;
        self.act(|hand| {
            let hand = hand.key_down(held.clone()).move_to(start.0, start.1).click_and_hold();
            hand.move_to(halfway.0, halfway.1).move_to(end.0, end.1).release().key_up(held.clone())
        })
    }

    /// Clicks `css` twice at a point, from its top left corner.
    ///
    /// # Errors
    /// The errors of [`Page::click_at`].
    pub fn double_click_at(&self, css: &str, x: f64, y: f64) -> Result<()> {
        let (x, y) = self.viewport_point(css, x, y)?;
        self.act(|hand| hand.move_to(x, y))?;
        // The driver's double click is two clicks where the machine is slow.
        for (clicks, kind) in
            [(1, "mousePressed"), (1, "mouseReleased"), (2, "mousePressed"), (2, "mouseReleased")]
        {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": clicks });
            self.devtools("Input.dispatchMouseEvent", &event)?;
        }
        Ok(())
    }

    /// Turns the wheel over `css` at a point, from its top left corner: towards the reader for a positive
    /// number of pixels, as a person scrolls down.
    ///
    /// # Errors
    /// The errors of [`Page::click_at`].
    pub fn wheel(&self, css: &str, (x, y): (f64, f64), down_px: f64) -> Result<()> {
        let (x, y) = self.viewport_point(css, x, y)?;
        let event = json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": down_px });
        self.devtools("Input.dispatchMouseEvent", &event).map(drop)
    }

    /// Presses the main button over `css` and moves on; the button stays down.
    ///
    /// # Errors
    /// The errors of [`Page::click_at`].
    pub fn begin_drag(&self, css: &str, from: (f64, f64), to: (f64, f64)) -> Result<()> {
        let start = self.viewport_point(css, from.0, from.1)?;
        let end = self.viewport_point(css, to.0, to.1)?;
        self.act(|hand| hand.move_to(start.0, start.1).click_and_hold().move_to(end.0, end.1))
    }

    /// Ends the drag that [`Page::begin_drag`] began.
    ///
    /// # Errors
    /// The errors of [`Page::click_at`].
    pub fn end_drag(&self, css: &str, to: (f64, f64)) -> Result<()> {
        let end = self.viewport_point(css, to.0, to.1)?;
        self.act(|hand| hand.move_to(end.0, end.1).release())
    }

    /// Types `text` into the field `css`, after its present text.
    ///
    /// # Errors
    /// Where no displayed element matches, or the element takes no text.
    pub fn send_keys(&self, css: &str, text: &str) -> Result<()> {
        let element = self.element(css)?;
        answer(element.send_keys(text))
    }

    /// Empties the field `css`, then types `text`.
    ///
    /// # Errors
    /// The errors of [`Page::send_keys`].
    pub fn fill(&self, css: &str, text: &str) -> Result<()> {
        let element = self.element(css)?;
        answer(async {
            element.clear().await?;
            element.send_keys(text).await
        })
    }

    /// Presses keys one after the other wherever the focus is: a [`Key`], or the letters of a text.
    ///
    /// # Errors
    /// The error of the browser.
    pub fn press(&self, keys: impl Into<TypingData>) -> Result<()> {
        self.act(|hand| hand.send_keys(keys))
    }

    /// Presses keys as [`Page::press`] does, while the key `held` is down.
    ///
    /// # Errors
    /// The error of the browser.
    pub fn press_with(&self, held: &Key, keys: impl Into<TypingData>) -> Result<()> {
        self.act(|hand| hand.key_down(held.clone()).send_keys(keys).key_up(held.clone()))
    }

    /// Presses keys as [`Page::press`] does, while the keys `one` and `other` are down.
    ///
    /// # Errors
    /// The error of the browser.
    pub fn press_with_both(&self, one: &Key, other: &Key, keys: impl Into<TypingData>) -> Result<()> {
        self.act(|hand| {
            let hand = hand.key_down(one.clone()).key_down(other.clone()).send_keys(keys);
            hand.key_up(other.clone()).key_up(one.clone())
        })
    }

    /// A word like a selector for the element that has the focus: `button#play`; `body` if no element has the
    /// focus.
    ///
    /// # Errors
    /// The error of the browser.
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
        let field = self.find(css)?;
        answer(field.send_keys(path.display().to_string()))
    }

    /// Picks several files at once.
    ///
    /// # Errors
    /// Where there is no such field, or a file is missing.
    pub fn upload_all(&self, css: &str, paths: &[String]) -> Result<()> {
        self.wait_until(&format!("document.querySelector({})", json!(css)))?;
        let field = self.find(css)?;
        answer(field.send_keys(paths.join("\n")))
    }

    /// Drops a file called `name` on `css`.
    ///
    /// # Errors
    /// Where no displayed element matches.
    pub fn drop_file(&self, css: &str, name: &str, bytes: &[u8]) -> Result<()> {
        self.wait_for(css)?;
        self.execute(DROP, &[json!(css), json!(name), json!(STANDARD.encode(bytes))]).map(drop)
    }

    /// Where a point of `css` is in the viewport.
    fn viewport_point(&self, css: &str, x: f64, y: f64) -> Result<(i64, i64)> {
        let rect = self.rect(css)?;
        // The driver takes the origin "element" from the middle of the visible part, which no caller knows.
        Ok((pixel(rect.x + x), pixel(rect.y + y)))
    }

    /// Performs the actions that `actions` adds to an empty list, without pauses.
    fn act(&self, actions: impl FnOnce(ActionChain) -> ActionChain) -> Result<()> {
        let none = Some(Duration::ZERO);
        answer(actions(self.driver.session()?.action_chain_with_delay(none, none)).perform())
    }
}

/// The whole pixel that holds `position`, since the driver takes no fractions of a pixel.
#[expect(clippy::cast_possible_truncation, reason = "no screen has so many pixels")]
fn pixel(position: f64) -> i64 {
    position.floor() as i64
}
