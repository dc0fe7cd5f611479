//! The licenses, banned packages and sources of `deny.toml`, checked on the output of `cargo metadata`.
//!
//! cargo-deny reads the same file and checks more, but building it takes minutes of a CI run.

use std::fs;

use anyhow::{Context, Result, ensure};
use cargo_metadata::Source;
use serde::Deserialize;

use crate::metadata;
use crate::workspace::Workspace;

/// The parts of `deny.toml` that are read here.
#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    name: String,
}

/// Checks every package of the lock file.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let text = fs::read_to_string(workspace.root().join("deny.toml")).context("cannot read deny.toml")?;
    let policy: Policy = toml::from_str(&text).context("deny.toml")?;
    let metadata = metadata::read(workspace)?;
    let mut found = Vec::new();
    for package in &metadata.packages {
        let license = package.license.as_deref().unwrap_or("no license");
        if !is_allowed(license, &policy.licenses.allow) {
            found.push(format!("{} is under {license}", package.name));
        }
        if policy.bans.deny.iter().any(|ban| package.name == ban.name) {
            found.push(format!("{} is banned", package.name));
        }
        if let Some(source) = package.source.as_ref().filter(|source| !Source::is_crates_io(source)) {
            found.push(format!("{} comes from {source}", package.name));
        }
    }
    ensure!(found.is_empty(), "deny.toml does not allow:\n  {}", found.join("\n  "));
    println!("    the licenses and sources of {} packages are those of deny.toml", metadata.packages.len());
    Ok(())
}

/// Whether the allowed licenses satisfy an expression. Brackets are dropped and `OR` binds before `AND`. This
/// reading is stricter than SPDX's in some expressions, and in none more lenient.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let is_listed = |license: &str| allowed.iter().any(|name| name == license.trim());
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(is_listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_license_is_allowed_where_one_choice_of_it_is() {
        let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception", "NCSA"].map(str::to_owned);
        for license in ["MIT", "GPL-3.0-only OR MIT", "Apache-2.0 / MIT", "(MIT OR Apache-2.0) AND NCSA"] {
            assert!(is_allowed(license, &allowed), "{license}");
        }
        for license in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "Apache-2.0", "no license", ""] {
            assert!(!is_allowed(license, &allowed), "{license}");
        }
    }
}
