//! Accessibility, as far as a program can check it: axe-core inside the page.

use std::fmt;
use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::page::Page;
use crate::root;

/// Runs axe-core and returns the fields that a test shows.
const RUN: &str = "
    const { violations } = await axe.run(document, { resultTypes: ['violations'] });
    return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, impact, help, nodes }) => ({
            id, impact, help, nodes: nodes.map(node => node.html + '\\n    ' + node.failureSummary),
        }));";

/// A rule of accessibility that the page breaks.
#[derive(Clone, Debug, Deserialize)]
pub struct Violation {
    /// The rule's name in axe-core, such as `color-contrast`.
    pub id: String,
    /// `serious` or `critical`.
    pub impact: String,
    /// The demand of the rule, in words.
    pub help: String,
    /// The elements that break the rule, each as HTML with the reason.
    pub nodes: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.id, self.impact, self.help)?;
        self.nodes.iter().try_for_each(|node| write!(f, "\n  {node}"))
    }
}

impl Page {
    /// The serious and critical violations that axe-core finds in the page as it is displayed now.
    ///
    /// # Errors
    /// Where axe-core is missing or does not run.
    pub fn accessibility(&self) -> Result<Vec<Violation>> {
        let file = root().join("target/tools/axe.min.js");
        let axe = fs::read_to_string(&file)
            .with_context(|| format!("{} is missing; `cargo xtask test` fetches it", file.display()))?;
        // A script of the driver is not the page's, so the page's policy does not stop it.
        self.execute(&axe, &[])?;
        Ok(serde_json::from_value(self.execute_async(RUN, &[])?)?)
    }

    /// Checks that axe-core finds nothing serious.
    ///
    /// # Errors
    /// The violations that axe-core finds.
    pub fn check_accessible(&self) -> Result<()> {
        let violations = self.accessibility()?;
        if !violations.is_empty() {
            let texts: Vec<_> = violations.iter().map(ToString::to_string).collect();
            bail!("not accessible:\n{}", texts.join("\n"));
        }
        Ok(())
    }
}
