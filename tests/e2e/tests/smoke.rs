//! The page loads.

use anyhow::{Result, ensure};
use blockyard_e2e::drive;

#[test]
fn the_page_loads_without_a_word_in_the_console() -> Result<()> {
    drive(|page| {
        page.wait_for("body > *")?;
        let url = page.url().to_owned();
        let requests = page.requests()?;
        ensure!(requests.iter().any(|request| request.url == format!("{url}blockyard-web_bg.wasm")));
        for request in requests {
            ensure!(request.method == "GET" && request.url.starts_with(&url), "{request:?}");
        }
        Ok(())
    })
}
