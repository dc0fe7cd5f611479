//! The page in a browser: loading, clicking, typing, reading, taking pictures.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use blockyard_serve::{Port, Server};
use serde::Deserialize;
use serde_json::{Value, json};
use thirtyfour::{By, WebElement};

use crate::driver::{Driver, answer};
use crate::{PATIENCE, root, wait_for_answer};

/// The size of the browser's window.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

/// The adapter for WebGPU that the browser has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuChoice {
    /// No adapter: the browser has WebGPU without an adapter.
    #[default]
    None,
    /// An adapter in software, the same on every machine. The adapter computes, but a picture that it shows
    /// on a canvas ends Chromium's GPU process.
    Software,
    /// The adapter of [`GpuChoice::Software`], in a browser that can show its pictures.
    SoftwareScreen,
}

/// The fonts that the browser finds beside those that the page brings along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fonts {
    /// The fonts of this machine.
    #[default]
    System,
    /// A single font, whose letters are far wider than those of any font that a page would ask for, so that a
    /// text in this font is noticed.
    OneThatNobodyChose,
}

impl Default for Window {
    fn default() -> Self {
        Self { width: 1280, height: 900 }
    }
}

/// Where an element is in the viewport.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct ElementRect {
    /// From the left edge of the viewport.
    pub x: f64,
    /// From the top edge of the viewport.
    pub y: f64,
    /// From left to right.
    pub width: f64,
    /// From top to bottom.
    pub height: f64,
}

/// The page in a separate browser; dropping this value ends the browser and the server.
///
/// Elements are named by CSS selectors, and the first match is meant. Methods that act on an element wait
/// until the element exists and is displayed.
pub struct Page {
    pub(crate) driver: Driver,
    server: Option<Server>,
    url: String,
    media: Vec<(&'static str, &'static str)>,
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Page").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The folder of the built page: `dist/`, or the folder that the variable `BLOCKYARD_TESTED_PAGE` names.
///
/// # Errors
/// Where no page was built in the folder.
pub fn built_page() -> Result<PathBuf> {
    let folder = std::env::var_os("BLOCKYARD_TESTED_PAGE").map_or_else(|| root().join("dist"), PathBuf::from);
    let is_built = folder.join("index.html").is_file();
    ensure!(is_built, "there is no page in {}: run `cargo xtask build`", folder.display());
    Ok(folder)
}

impl Page {
    /// A browser that has not loaded the page yet: for settings that must come first.
    ///
    /// # Errors
    /// Where the page was not built, or the browser does not start.
    pub fn blank(window: Window, gpu: GpuChoice) -> Result<Self> {
        Self::of(&built_page()?, window, gpu)
    }

    /// A browser as [`Page::blank`] starts it, with these fonts in place of this machine's.
    ///
    /// # Errors
    /// The errors of [`Page::blank`].
    pub fn with_fonts(window: Window, gpu: GpuChoice, fonts: Fonts) -> Result<Self> {
        Self::before(&built_page()?, window, gpu, fonts)
    }

    /// A browser and a server of the files below another folder, which need not be the page.
    ///
    /// # Errors
    /// Where the folder is missing, or the browser does not start.
    pub fn of(folder: &Path, window: Window, gpu: GpuChoice) -> Result<Self> {
        Self::before(folder, window, gpu, Fonts::System)
    }

    /// A browser at the address of a page that another program serves.
    ///
    /// # Errors
    /// Where the browser does not start, or the page does not load.
    pub fn elsewhere(url: &str, window: Window) -> Result<Self> {
        let (root, path) = url.split_at(url.find('?').unwrap_or(url.len()));
        let driver = Driver::start(window, GpuChoice::None, Fonts::System)?;
        let page = Self { driver, server: None, url: root.to_owned(), media: Vec::new() };
        page.goto(path)?;
        Ok(page)
    }

    fn before(folder: &Path, window: Window, gpu: GpuChoice, fonts: Fonts) -> Result<Self> {
        let server = Server::start(folder, Port::take(0)?)?;
        let url = server.url();
        let driver = Driver::start(window, gpu, fonts)?;
        Ok(Self { driver, server: Some(server), url, media: Vec::new() })
    }

    /// A Firefox that has not loaded the page yet, driven through geckodriver (from the path, or
    /// `GECKODRIVER`; `FIREFOX` names another browser). Methods that read the browser's log or use its
    /// developer tools fail there.
    ///
    /// # Errors
    /// Where the page was not built, or the browser does not start.
    pub fn firefox(window: Window) -> Result<Self> {
        let server = Server::start(&built_page()?, Port::take(0)?)?;
        let url = server.url();
        let driver = Driver::start_firefox(window)?;
        Ok(Self { driver, server: Some(server), url, media: Vec::new() })
    }

    /// Loads `path` of the page's server (`/` is the page) and waits for its scripts.
    ///
    /// # Errors
    /// Where the page does not load.
    pub fn goto(&self, path: &str) -> Result<()> {
        let url = format!("{}{}", self.url, path.trim_start_matches('/'));
        answer(self.driver.session()?.goto(url))?;
        // The program starts after the page has loaded, and fetches the part that the address names.
        self.wait_until("document.querySelector('#app .loading, .part-loading') === null").map(drop)
    }

    /// Loads a page from a file, without the server.
    ///
    /// # Errors
    /// Where the page does not load.
    pub fn goto_file(&self, path: &Path) -> Result<()> {
        let path = path.canonicalize().with_context(|| path.display().to_string())?;
        answer(self.driver.session()?.goto(format!("file://{}", path.display())))
    }

    /// Goes into a frame: from now on, elements are looked for in the frame.
    ///
    /// # Errors
    /// Where no displayed frame matches.
    pub fn enter_frame(&self, css: &str) -> Result<()> {
        let frame = self.element(css)?;
        answer(frame.enter_frame())
    }

    /// The address of the page's server, with a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs `script`, the body of a function of `arguments`, and returns what it returns.
    ///
    /// # Errors
    /// What the script throws.
    pub fn execute(&self, script: &str, arguments: &[Value]) -> Result<Value> {
        let value = answer(self.driver.session()?.execute(script, arguments.to_vec()))?;
        Ok(value.json().clone())
    }

    /// Runs `script` as the body of an async function, as [`Page::execute`] runs other scripts, and returns
    /// what it returns.
    ///
    /// # Errors
    /// What the script throws, or that it does not end.
    pub fn execute_async(&self, script: &str, arguments: &[Value]) -> Result<Value> {
        // A promise that a script returns is awaited by the driver, its rejection is the error.
        self.execute(&format!("return (async function() {{ {script} }}).apply(null, arguments)"), arguments)
    }

    /// Waits until the JavaScript expression `condition` is true, and returns its value.
    ///
    /// # Errors
    /// Where the condition does not become true, or throws.
    pub fn wait_until(&self, condition: &str) -> Result<Value> {
        wait_for_answer(condition, PATIENCE, || {
            let value = self.execute(&format!("return ({condition})"), &[])?;
            let is_true = !matches!(value, Value::Null | Value::Bool(false)) && value != json!(0);
            Ok((is_true && value != json!("")).then_some(value))
        })
    }

    /// Waits until an element matches `css` and is displayed.
    ///
    /// # Errors
    /// Where no such element is displayed.
    pub fn wait_for(&self, css: &str) -> Result<()> {
        let css = json!(css);
        let shown = "checkVisibility({ visibilityProperty: true })";
        self.wait_until(&format!("document.querySelector({css})?.{shown}")).map(drop)
    }

    /// Waits until no displayed element matches `css`.
    ///
    /// # Errors
    /// Where such an element stays displayed.
    pub fn wait_gone(&self, css: &str) -> Result<()> {
        let css = json!(css);
        let shown = "checkVisibility({ visibilityProperty: true })";
        self.wait_until(&format!("![...document.querySelectorAll({css})].some(it => it.{shown})")).map(drop)
    }

    /// Waits until the text of `css` contains `part`.
    ///
    /// # Errors
    /// Where the text does not contain `part`; the error has the text.
    pub fn wait_text(&self, css: &str, part: &str) -> Result<()> {
        let (selector, wanted) = (json!(css), json!(part));
        let condition = format!("document.querySelector({selector})?.textContent.includes({wanted})");
        self.wait_until(&condition).map(drop).with_context(|| match self.text(css) {
            Ok(text) => format!("the text of {css} is {text:?}"),
            Err(error) => format!("{error:#}"),
        })
    }

    /// The text of `css` as it is displayed.
    ///
    /// # Errors
    /// Where no displayed element matches.
    pub fn text(&self, css: &str) -> Result<String> {
        self.with_element(css, |element| answer(element.text()))
    }

    /// The attribute `name` of `css`; `None` where the element has no such attribute.
    ///
    /// # Errors
    /// Where no displayed element matches.
    pub fn attribute(&self, css: &str, name: &str) -> Result<Option<String>> {
        self.wait_for(css)?;
        let value = self.execute(
            "return document.querySelector(arguments[0]).getAttribute(arguments[1])",
            &[json!(css), json!(name)],
        )?;
        Ok(value.as_str().map(str::to_owned))
    }

    /// The typed text or the chosen option of the field `css`.
    ///
    /// # Errors
    /// Where no displayed element matches.
    pub fn value(&self, css: &str) -> Result<String> {
        let element = self.element(css)?;
        let value = answer(element.prop("value"))?;
        value.with_context(|| format!("{css} has no value"))
    }

    /// How many elements match `css` now, displayed or not.
    ///
    /// # Errors
    /// Where `css` is not a selector.
    pub fn count(&self, css: &str) -> Result<usize> {
        let count = self.execute("return document.querySelectorAll(arguments[0]).length", &[json!(css)])?;
        Ok(serde_json::from_value(count)?)
    }

    /// Where `css` is in the viewport, after scrolling it into view.
    ///
    /// # Errors
    /// Where no displayed element matches.
    pub fn rect(&self, css: &str) -> Result<ElementRect> {
        self.wait_for(css)?;
        let script = "
            const element = document.querySelector(arguments[0]);
            element.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });
            const { x, y, width, height } = element.getBoundingClientRect();
            return { x, y, width, height };";
        Ok(serde_json::from_value(self.execute(script, &[json!(css)])?)?)
    }

    /// Sends a command of the Chrome DevTools Protocol.
    ///
    /// # Errors
    /// The error of the browser.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Result<Value> {
        answer(self.driver.session()?.cdp().send_raw(command, parameters))
    }

    /// Makes the system prefer dark colors, or light colors.
    ///
    /// # Errors
    /// The error of the browser.
    pub fn dark(&mut self, is_dark: bool) -> Result<()> {
        self.emulate("prefers-color-scheme", if is_dark { "dark" } else { "light" })
    }

    /// Makes the system ask for little motion, or not.
    ///
    /// # Errors
    /// The error of the browser.
    pub fn reduced_motion(&mut self, is_reduced: bool) -> Result<()> {
        self.emulate("prefers-reduced-motion", if is_reduced { "reduce" } else { "no-preference" })
    }

    fn emulate(&mut self, feature: &'static str, value: &'static str) -> Result<()> {
        // The browser forgets the features that a command does not name.
        self.media.retain(|(name, _)| *name != feature);
        self.media.push((feature, value));
        let features: Vec<_> =
            self.media.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features })).map(drop)
    }

    /// Cuts the network for good: the browser is offline and the server is stopped.
    ///
    /// # Errors
    /// The error of the browser.
    pub fn cut_network(&mut self) -> Result<()> {
        self.devtools("Network.enable", &json!({}))?;
        let nothing =
            json!({ "offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0 });
        self.devtools("Network.emulateNetworkConditions", &nothing)?;
        self.server = None;
        Ok(())
    }

    /// How long the main thread has worked since the first call, in seconds: the difference of two calls is
    /// the time of the frames between the calls.
    ///
    /// # Errors
    /// The error of the browser.
    pub fn main_thread_seconds(&self) -> Result<f64> {
        self.devtools("Performance.enable", &json!({ "timeDomain": "threadTicks" }))?;
        let metrics = self.devtools("Performance.getMetrics", &json!({}))?;
        let metrics = metrics["metrics"].as_array().context("the browser has no metrics")?;
        let task = metrics.iter().find(|metric| metric["name"] == "TaskDuration");
        task.and_then(|metric| metric["value"].as_f64()).context("the browser does not tell TaskDuration")
    }

    /// Writes a picture of the viewport, as PNG.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn screenshot(&self, path: &Path) -> Result<()> {
        make_folder_of(path)?;
        answer(self.driver.session()?.screenshot(path))
    }

    /// The displayed element `css`.
    pub(crate) fn element(&self, css: &str) -> Result<WebElement> {
        self.wait_for(css)?;
        self.find(css)
    }

    /// Calls `ask` with the displayed element `css`, and once more if the page replaced the element between
    /// finding and asking.
    pub(crate) fn with_element<T>(&self, css: &str, ask: impl Fn(WebElement) -> Result<T>) -> Result<T> {
        let once = || ask(self.element(css)?);
        once()
            .or_else(|error| if format!("{error:#}").contains("stale element") { once() } else { Err(error) })
    }

    /// The element `css`, displayed or not.
    pub(crate) fn find(&self, css: &str) -> Result<WebElement> {
        answer(self.driver.session()?.find(By::Css(css)))
    }
}

fn make_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().context("a picture is a file in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}
