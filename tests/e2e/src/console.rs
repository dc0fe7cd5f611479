//! The messages of the page in the console, and its requests to the network.

use anyhow::{Result, bail};
use serde_json::Value;
use thirtyfour::BrowserLogEntry;

use crate::driver::answer;
use crate::page::Page;

/// A request that the page made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkRequest {
    /// `GET`, `POST`, ...
    pub method: String,
    /// The whole address.
    pub url: String,
}

impl Page {
    /// The messages in the console since the last call, in order.
    ///
    /// # Errors
    /// The error of the browser.
    pub fn console(&self) -> Result<Vec<BrowserLogEntry>> {
        answer(self.driver.session()?.browser_log())
    }

    /// Checks that the console got no error since the last look at it: none written, none uncaught, nothing
    /// that the page's policy blocked, no file that failed to load.
    ///
    /// # Errors
    /// The errors that the console got.
    pub fn check_console(&self) -> Result<()> {
        let entries = self.console()?;
        let severe: Vec<_> = entries
            .iter()
            .filter(|entry| entry.level == "SEVERE")
            .map(|entry| format!("{}: {}", entry.source.as_deref().unwrap_or("browser"), entry.message))
            .collect();
        if !severe.is_empty() {
            bail!("errors in the console:\n{}", severe.join("\n"));
        }
        Ok(())
    }

    /// The requests that the page made to the network since the last call, in order; requests of its workers
    /// are not among them.
    ///
    /// # Errors
    /// The error of the browser.
    pub fn requests(&self) -> Result<Vec<NetworkRequest>> {
        let entries = answer(self.driver.session()?.get_log("performance"))?;
        let mut requests = Vec::new();
        for entry in entries {
            let event: Value = serde_json::from_str(&entry.message)?;
            let event = &event["message"];
            if event["method"] == "Network.requestWillBeSent" {
                let request = &event["params"]["request"];
                let word = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
                let request = NetworkRequest { method: word("method"), url: word("url") };
                // Requests of the browser's start page, and addresses inside the page such as blobs, are left
                // out.
                if ["http:", "https:", "ws:", "wss:"].iter().any(|scheme| request.url.starts_with(scheme)) {
                    requests.push(request);
                }
            }
        }
        Ok(requests)
    }
}
