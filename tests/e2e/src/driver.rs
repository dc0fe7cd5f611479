//! A browser that a WebDriver drives: its processes and its session.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use thirtyfour::error::{WebDriverError, WebDriverResult};
use thirtyfour::support::block_on;
use thirtyfour::{
    Capabilities, ChromeCapabilities, ChromiumLikeCapabilities as _, DesiredCapabilities,
    FirefoxCapabilities, LoggingPrefsLogLevel, TimeoutConfiguration, WebDriver,
};

use crate::page::{Fonts, GpuChoice, Window};
use crate::{PATIENCE, output, repository_file};

/// Browsers that run at a time in one test program.
const BROWSERS: u32 = 2;

/// One of the places for a running browser; given back on drop.
struct Permit;

static RUNNING: Mutex<u32> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

impl Permit {
    fn wait() -> Self {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |running: &mut u32| *running >= BROWSERS;
        *FREED.wait_while(running, full).unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}

/// The folder of a browser's profile; removed on drop.
struct Profile(PathBuf);

impl Profile {
    fn new() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = output().join(format!("profile-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder.canonicalize()?))
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // The browser may still be writing as it ends; then only a folder below target/ stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes the settings of fontconfig below which a browser finds the font of `tests/fixtures/fonts` and no
/// other.
fn write_font_settings(profile: &Profile) -> Result<PathBuf> {
    let fonts = repository_file("tests/fixtures/fonts")?;
    let (file, cache) = (profile.0.join("fonts.conf"), profile.0.join("fontconfig"));
    let text = format!(
        "<?xml version=\"1.0\"?>\n<fontconfig>\n<dir>{}</dir>\n<cachedir>{}</cachedir>\n</fontconfig>\n",
        fonts.display(),
        cache.display()
    );
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// A browser, and the program that drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Browser {
    Chromium,
    Firefox,
}

impl Browser {
    /// The name of its driver.
    fn driver(self) -> &'static str {
        match self {
            Self::Chromium => "chromedriver",
            Self::Firefox => "geckodriver",
        }
    }

    /// The driver: another one may be named in the environment.
    fn program(self) -> OsString {
        let name = self.driver();
        std::env::var_os(name.to_uppercase()).unwrap_or_else(|| OsString::from(name))
    }
}

/// A running driver; killed on drop.
struct Process {
    child: Child,
    /// The pipe is kept open, since the driver would end when it writes to a closed pipe.
    _stdout: BufReader<ChildStdout>,
    port: u16,
}

/// Starts of a driver, of which each may meet a port that is taken.
///
/// `--port=0` lets chromedriver choose a port in one family of addresses; where another process has that port in
/// the other family, chromedriver ends.
const STARTS: u32 = 5;

impl Process {
    /// The browser gets its environment from the driver: `fonts` are the settings of fontconfig in the place
    /// of the system's.
    fn start(browser: Browser, fonts: Option<&Path>) -> Result<Self> {
        let mut words = String::new();
        for _ in 0..STARTS {
            match Self::start_once(browser, fonts)? {
                Ok(process) => return Ok(process),
                Err(last) => words = last,
            }
        }
        bail!("{} ended {STARTS} times before it named its port: {words}", browser.driver())
    }

    /// A driver that named its port, or the words of one that ended before.
    fn start_once(browser: Browser, fonts: Option<&Path>) -> Result<Result<Self, String>> {
        let program = browser.program();
        let mut child = Command::new(&program)
            .arg("--port=0")
            .envs(fonts.map(|file| ("FONTCONFIG_FILE", file)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}; `cargo xtask test` installs it", program.display()))?;
        let mut stdout = BufReader::new(child.stdout.take().context("the driver has no output")?);
        let (mut words, mut line) = (String::new(), String::new());
        while stdout.read_line(&mut line)? > 0 {
            if let Some(port) = port_named(&line) {
                return Ok(Ok(Self { child, _stdout: stdout, port }));
            }
            words.push_str(&line);
            line.clear();
        }
        let _ = child.kill();
        let _ = child.wait();
        Ok(Err(words))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The port in `ChromeDriver was started successfully on port 34567.` or geckodriver's `Listening on
/// 127.0.0.1:34567`.
fn port_named(line: &str) -> Option<u16> {
    let (_, port) = line
        .split_once("started successfully on port ")
        .or_else(|| line.split_once("Listening on 127.0.0.1:"))?;
    port.trim_end().trim_end_matches('.').parse().ok()
}

/// A session of WebDriver with a separate browser.
///
/// Fields drop in order: the driver and with it the browser, then the profile, then the place for the next
/// browser.
pub(crate) struct Driver {
    session: Option<WebDriver>,
    _process: Process,
    _profile: Profile,
    _permit: Permit,
}

impl Driver {
    pub(crate) fn start(window: Window, gpu: GpuChoice, fonts: Fonts) -> Result<Self> {
        let profile = Profile::new()?;
        let fonts = match fonts {
            Fonts::System => None,
            Fonts::OneThatNobodyChose => Some(write_font_settings(&profile)?),
        };
        let capabilities = capabilities(window, gpu, &profile).map_err(|error| readable(&error))?;
        Self::open(Browser::Chromium, capabilities, profile, fonts.as_deref())
    }

    /// Firefox, without adapters; geckodriver makes a profile below the folder for profiles.
    pub(crate) fn start_firefox(window: Window) -> Result<Self> {
        let profile = Profile::new()?;
        let capabilities = firefox(window).map_err(|error| readable(&error))?;
        Self::open(Browser::Firefox, capabilities, profile, None)
    }

    fn open(
        browser: Browser,
        capabilities: impl Into<Capabilities>,
        profile: Profile,
        fonts: Option<&Path>,
    ) -> Result<Self> {
        let permit = Permit::wait();
        let process = Process::start(browser, fonts)?;
        let capabilities = capabilities.into();
        let url = format!("http://127.0.0.1:{}", process.port);
        let session = answer(async {
            // Longer than the driver's own patience, whose error says more.
            let connection = WebDriver::builder(url, capabilities).request_timeout(3 * PATIENCE);
            let session = connection.connect().await?;
            session.update_timeouts(TimeoutConfiguration::new(Some(PATIENCE), Some(PATIENCE), None)).await?;
            Ok(session)
        });
        let session = Some(session.with_context(|| format!("{} opened no session", browser.driver()))?);
        Ok(Self { session, _process: process, _profile: profile, _permit: permit })
    }

    pub(crate) fn session(&self) -> Result<&WebDriver> {
        self.session.as_ref().context("the browser has ended")
    }
}

/// Waits for the answer to a command.
pub(crate) fn answer<T: Send>(command: impl Future<Output = WebDriverResult<T>> + Send) -> Result<T> {
    block_on(command).map_err(|error| readable(&error))
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            // The driver's process ends next, and the browser with it.
            let _ = answer(session.quit());
        }
    }
}

/// The error without the driver's own stack.
fn readable(error: &WebDriverError) -> anyhow::Error {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    anyhow::Error::msg(
        lines.take_while(|line| !line.starts_with("Stacktrace")).collect::<Vec<_>>().join("; "),
    )
}

/// The options that make Chromium compute WebGPU in software.
const SOFTWARE_GPU: [&str; 3] =
    ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-unsafe-swiftshader"];

/// The options that make Chromium compose the page with Vulkan, in software: without it, its GPU process ends
/// with the first picture that such an adapter shows on a canvas.
const SOFTWARE_SCREEN: [&str; 4] =
    ["--use-gl=angle", "--use-angle=swiftshader", "--enable-features=Vulkan", "--use-vulkan=swiftshader"];

fn capabilities(window: Window, gpu: GpuChoice, profile: &Profile) -> WebDriverResult<ChromeCapabilities> {
    let mut capabilities = DesiredCapabilities::chrome();
    for argument in [
        "--headless",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        // Colors and sizes in pictures and checks are the same on every machine.
        "--force-color-profile=srgb",
        "--force-device-scale-factor=1",
        // A browser on a pipe ends when the driver ends, in whichever way.
        "--remote-debugging-pipe",
        &format!("--window-size={},{}", window.width, window.height),
        &format!("--user-data-dir={}", profile.0.display()),
    ] {
        capabilities.add_arg(argument)?;
    }
    if gpu != GpuChoice::None {
        SOFTWARE_GPU.iter().try_for_each(|argument| capabilities.add_arg(argument))?;
    }
    if gpu == GpuChoice::SoftwareScreen {
        SOFTWARE_SCREEN.iter().try_for_each(|argument| capabilities.add_arg(argument))?;
    }
    if let Some(browser) = std::env::var_os("CHROME") {
        capabilities.set_binary(&browser.to_string_lossy())?;
    }
    for log in ["browser", "performance"] {
        capabilities.set_logging_prefs(log, LoggingPrefsLogLevel::All)?;
    }
    Ok(capabilities)
}

fn firefox(window: Window) -> WebDriverResult<FirefoxCapabilities> {
    let mut capabilities = DesiredCapabilities::firefox();
    for argument in
        ["-headless", &format!("--width={}", window.width), &format!("--height={}", window.height)]
    {
        capabilities.add_arg(argument)?;
    }
    if let Some(browser) = std::env::var_os("FIREFOX") {
        capabilities.set_firefox_binary(&browser.to_string_lossy())?;
    }
    Ok(capabilities)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_words_of_the_driver() {
        assert_eq!(port_named("ChromeDriver was started successfully on port 34567.\n"), Some(34567));
        let line = "1700000000000\tgeckodriver\tINFO\tListening on 127.0.0.1:34567\n";
        assert_eq!(port_named(line), Some(34567));
        assert_eq!(port_named("Starting ChromeDriver 156.0 on port 0\n"), None);
    }
}
