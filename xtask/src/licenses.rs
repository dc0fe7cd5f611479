//! The rules for dependencies: the licenses, banned packages and sources of `deny.toml`, checked on the
//! output of `cargo metadata`.
//!
//! cargo-deny reads the same file and checks more, but building it takes minutes of a CI run, and this check
//! takes a second.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail};
use cargo_metadata::Package;
use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use crate::metadata;
use crate::workspace::Workspace;

/// The parts of `deny.toml` that are read here.
#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    /// Licenses of packages that name none.
    #[serde(default)]
    clarify: Vec<Clarification>,
}

#[derive(Deserialize)]
struct Clarification {
    #[serde(rename = "crate")]
    name: String,
    expression: String,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// Checks every package of the lock file.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let file = workspace.root().join("deny.toml");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let policy: Policy = toml::from_str(&text).context("deny.toml")?;
    let allowed = policy.licensees()?;
    let metadata = metadata::read(workspace)?;
    let mut found = Vec::new();
    for package in &metadata.packages {
        let license = policy.license_of(&package.name, package.license.as_deref());
        found.extend(license_problem(license, &allowed).map(|what| line(package, &what)));
        found.extend(policy.problem(package).map(|what| line(package, &what)));
    }
    if !found.is_empty() {
        bail!("deny.toml does not allow:\n  {}", found.join("\n  "));
    }
    println!("    the licenses and sources of {} packages are those of deny.toml", metadata.packages.len());
    Ok(())
}

fn line(package: &Package, what: &str) -> String {
    format!("{} {}: {what}", package.name, package.version)
}

impl Policy {
    fn licensees(&self) -> Result<Vec<Licensee>> {
        let parse = |name: &String| Licensee::parse(name).with_context(|| format!("deny.toml: `{name}`"));
        self.licenses.allow.iter().map(parse).collect()
    }

    /// The license of the package, or the policy's clarification for a package without one.
    fn license_of<'a>(&'a self, name: &str, license: Option<&'a str>) -> Option<&'a str> {
        let clarified = || self.licenses.clarify.iter().find(|clarification| clarification.name == name);
        license.or_else(|| clarified().map(|clarification| clarification.expression.as_str()))
    }

    fn problem(&self, package: &Package) -> Option<String> {
        if let Some(ban) = self.bans.deny.iter().find(|ban| package.name == ban.name) {
            return Some(format!("banned: {}", ban.reason));
        }
        let source = &package.source.as_ref()?.repr;
        let registry = source.strip_prefix("registry+").map(str::to_owned);
        let registries: BTreeSet<_> = self.sources.allow_registry.iter().cloned().collect();
        (!registry.is_some_and(|name| registries.contains(&name))).then(|| format!("comes from {source}"))
    }
}

/// Why the license of a package is not allowed.
fn license_problem(license: Option<&str>, allowed: &[Licensee]) -> Option<String> {
    let Some(license) = license else { return Some("names no license".to_owned()) };
    // Old manifests write `MIT/Apache-2.0`.
    match Expression::parse_mode(license, ParseMode::LAX) {
        Err(error) => Some(format!("the license `{license}` cannot be read: {}", error.reason)),
        Ok(expression) => {
            let suits = expression.evaluate(|asked| allowed.iter().any(|license| license.satisfies(asked)));
            (!suits).then(|| format!("is under {license}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_license_is_allowed_where_one_choice_of_it_is() {
        let allowed =
            ["MIT", "Apache-2.0 WITH LLVM-exception", "NCSA"].map(|name| Licensee::parse(name).unwrap());
        let problem = |license| license_problem(license, &allowed);
        for license in ["MIT", "GPL-3.0-only OR MIT", "Apache-2.0/MIT", "(MIT OR Apache-2.0) AND NCSA"] {
            assert_eq!(problem(Some(license)), None);
        }
        assert_eq!(problem(Some("GPL-3.0-only")).unwrap(), "is under GPL-3.0-only");
        assert_eq!(problem(Some("MIT AND GPL-3.0-only")).unwrap(), "is under MIT AND GPL-3.0-only");
        assert_eq!(problem(Some("Apache-2.0")).unwrap(), "is under Apache-2.0");
        assert_eq!(problem(None).unwrap(), "names no license");
        assert!(problem(Some("my own")).unwrap().starts_with("the license `my own` cannot be read"));
    }

    #[test]
    fn banned_packages_and_strange_sources_are_found() {
        let workspace = Workspace::find();
        let metadata = metadata::read(&workspace).unwrap();
        let mut package = metadata.packages.iter().find(|package| package.name == "anyhow").unwrap().clone();
        let text = fs::read_to_string(workspace.root().join("deny.toml")).unwrap();
        let mut policy: Policy = toml::from_str(&text).unwrap();
        assert_eq!(policy.problem(&package), None);
        package.source = Some(cargo_metadata::Source { repr: "git+https://example.org/anyhow".to_owned() });
        assert_eq!(policy.problem(&package).unwrap(), "comes from git+https://example.org/anyhow");
        policy.bans.deny.push(Ban { name: "anyhow".to_owned(), reason: "a test".to_owned() });
        assert_eq!(policy.problem(&package).unwrap(), "banned: a test");
        let expression = "BSD-2-Clause".to_owned();
        policy.licenses.clarify.push(Clarification { name: "unnamed".to_owned(), expression });
        assert_eq!(policy.license_of("unnamed", None), Some("BSD-2-Clause"));
        assert_eq!(policy.license_of("unnamed", Some("MIT")), Some("MIT"));
        assert_eq!(policy.license_of("anyhow", None), None);
    }
}
