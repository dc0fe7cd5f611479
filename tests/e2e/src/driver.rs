//! One browser behind one WebDriver: its processes, and the protocol as far as the harness needs it.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::page::{Gpu, Window};
use crate::{PATIENCE, output};

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
        // The browser may still be writing as it ends: what stays is only a folder below target/.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running chromedriver; killed on drop.
struct Process {
    child: Child,
    /// Kept open: the driver would die of writing to a closed pipe.
    _stdout: BufReader<ChildStdout>,
    port: u16,
}

impl Process {
    fn start() -> Result<Self> {
        let program = std::env::var_os("CHROMEDRIVER").unwrap_or_else(|| OsString::from("chromedriver"));
        let mut child = Command::new(&program)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}; `cargo xtask test` installs it", program.display()))?;
        let mut stdout = BufReader::new(child.stdout.take().context("chromedriver has no output")?);
        let mut line = String::new();
        loop {
            line.clear();
            if stdout.read_line(&mut line)? == 0 {
                let _ = child.kill();
                let _ = child.wait();
                bail!("chromedriver ended before it named its port");
            }
            if let Some(port) = port_named(&line) {
                return Ok(Self { child, _stdout: stdout, port });
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The port in `ChromeDriver was started successfully on port 34567.`
fn port_named(line: &str) -> Option<u16> {
    line.split_once("started successfully on port ")?.1.trim_end().trim_end_matches('.').parse().ok()
}

/// A session of WebDriver with a browser of its own.
///
/// Fields drop in order: the driver and with it the browser, then the profile, then the place for the next browser.
pub(crate) struct Driver {
    process: Process,
    session: String,
    _profile: Profile,
    _permit: Permit,
}

impl Driver {
    pub(crate) fn start(window: Window, gpu: Gpu) -> Result<Self> {
        let permit = Permit::wait();
        let profile = Profile::new()?;
        let process = Process::start()?;
        let capabilities = capabilities(window, gpu, &profile);
        let mut driver = Self { process, session: String::new(), _profile: profile, _permit: permit };
        let session = driver.call("POST", "/session", &capabilities)?;
        let id = session["sessionId"].as_str().context("chromedriver opened no session")?;
        id.clone_into(&mut driver.session);
        let patience = u64::try_from(PATIENCE.as_millis())?;
        driver.post("/timeouts", &json!({ "script": patience, "pageLoad": patience }))?;
        Ok(driver)
    }

    /// Sends a command of this session; `path` is what follows the session's id.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.call("POST", &format!("/session/{}{path}", self.session), body)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        self.call("GET", &format!("/session/{}{path}", self.session), &Value::Null)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let url = format!("http://127.0.0.1:{}{path}", self.process.port);
        let request = match method {
            "POST" => minreq::post(url).with_body(body.to_string()),
            "DELETE" => minreq::delete(url),
            _ => minreq::get(url),
        };
        // Longer than the driver's own patience, whose error says more.
        let response = request
            .with_header("Content-Type", "application/json; charset=utf-8")
            .with_timeout(3 * PATIENCE.as_secs())
            .send()
            .with_context(|| format!("chromedriver did not answer {path}"))?;
        let answer: Value = serde_json::from_slice(response.as_bytes())
            .with_context(|| format!("chromedriver answered {path} with something that is not JSON"))?;
        let value = &answer["value"];
        if let Some(error) = value.get("error").and_then(Value::as_str) {
            let message = value["message"].as_str().unwrap_or_default();
            // The lines after the first are the driver's own stack.
            bail!("{error}: {}", message.lines().next().unwrap_or_default());
        }
        Ok(value.clone())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.call("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
    }
}

/// What makes Chromium compute WebGPU in software.
const SOFTWARE_GPU: [&str; 3] =
    ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-unsafe-swiftshader"];

fn capabilities(window: Window, gpu: Gpu, profile: &Profile) -> Value {
    let mut options = json!({
        "args": [
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
            // A browser on a pipe ends when the driver does, however that ends.
            "--remote-debugging-pipe",
            format!("--window-size={},{}", window.width, window.height),
            format!("--user-data-dir={}", profile.0.display()),
        ],
    });
    if gpu == Gpu::Software
        && let Some(arguments) = options["args"].as_array_mut()
    {
        arguments.extend(SOFTWARE_GPU.map(Into::into));
    }
    if let Some(browser) = std::env::var_os("CHROME") {
        options["binary"] = browser.to_string_lossy().into();
    }
    json!({ "capabilities": { "alwaysMatch": {
        "browserName": "chrome",
        "goog:chromeOptions": options,
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
    } } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_words_of_the_driver() {
        assert_eq!(port_named("ChromeDriver was started successfully on port 34567.\n"), Some(34567));
        assert_eq!(port_named("Starting ChromeDriver 156.0 on port 0\n"), None);
    }
}
