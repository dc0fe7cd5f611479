//! What `cargo metadata` says about the workspace: the part that this program asks for.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::workspace::{self, Workspace};

/// All packages of the lock file, with ours among them.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    pub(crate) target_directory: std::path::PathBuf,
}

/// One package.
#[derive(Deserialize)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    version: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: std::collections::BTreeMap<String, Vec<String>>,
}

/// A dependency as a manifest asks for it.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

impl Metadata {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let text = workspace::read(&mut workspace.cargo(["metadata", "--format-version", "1"]))?;
        Self::parse(&text)
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("cargo metadata printed something unexpected")
    }

    /// Our packages, in cargo's order.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The package of ours in the folder, as cargo's `--package` takes it.
    pub(crate) fn package_in(&self, folder: &std::path::Path) -> Result<&str> {
        let start = format!("path+file://{}#", folder.display());
        let found = self.members().find(|member| member.id.starts_with(&start));
        found.map(|member| member.id.as_str()).with_context(|| format!("no package in {}", folder.display()))
    }

    /// Bindings made by one version of wasm-bindgen do not load in a program built with another.
    pub(crate) fn check_bindgen(&self) -> Result<()> {
        let versions = |name: &str| {
            let found = self.packages.iter().filter(|package| package.name == name);
            found.map(|package| package.version.clone()).collect::<Vec<_>>()
        };
        let (page, tool) = (versions("wasm-bindgen"), versions("wasm-bindgen-cli-support"));
        if page.len() != 1 || page != tool {
            bail!(
                "wasm-bindgen is {} in Cargo.lock, but xtask makes bindings for {}: \
                 write the same version in xtask/Cargo.toml and xtask/wasm-runner/Cargo.toml",
                listed(&page),
                listed(&tool)
            );
        }
        Ok(())
    }
}

fn listed(versions: &[String]) -> String {
    if versions.is_empty() { "missing".to_owned() } else { versions.join(" and ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_versions(page: &[&str], tool: &[&str]) -> Metadata {
        let package = |name: &str, version: &&str| Package {
            id: format!("{name}@{version}"),
            name: name.to_owned(),
            version: (*version).to_owned(),
            dependencies: Vec::new(),
            features: std::collections::BTreeMap::new(),
        };
        let page = page.iter().map(|version| package("wasm-bindgen", version));
        let tool = tool.iter().map(|version| package("wasm-bindgen-cli-support", version));
        let packages = page.chain(tool).collect();
        Metadata { packages, workspace_members: Vec::new(), target_directory: "target".into() }
    }

    #[test]
    fn versions_that_drift_apart_are_told() {
        assert!(with_versions(&["0.2.130"], &["0.2.130"]).check_bindgen().is_ok());
        for (page, tool, told) in [
            (
                &["0.2.131"][..],
                &["0.2.130"][..],
                "0.2.131 in Cargo.lock, but xtask makes bindings for 0.2.130",
            ),
            (&["0.2.130", "0.2.131"], &["0.2.130"], "0.2.130 and 0.2.131"),
            (&[], &["0.2.130"], "missing"),
        ] {
            let error = with_versions(page, tool).check_bindgen().unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn members_are_told_from_what_they_depend_on() {
        let text = r#"{
            "packages": [
                {"id": "a", "name": "ours", "version": "0.1.0", "features": {},
                 "dependencies": [{"name": "theirs", "kind": null}, {"name": "tests", "kind": "dev"}]},
                {"id": "b", "name": "theirs", "version": "1.0.0", "features": {}, "dependencies": []}
            ],
            "workspace_members": ["a"],
            "target_directory": "/somewhere/target",
            "version": 1
        }"#;
        let metadata = Metadata::parse(text).unwrap();
        let members: Vec<_> = metadata.members().map(|package| package.name.as_str()).collect();
        assert_eq!(members, ["ours"]);
    }
}
