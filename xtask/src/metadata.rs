//! The metadata of the workspace, from `cargo metadata`.

use anyhow::{Result, bail};
use cargo_metadata::semver::Version;
use cargo_metadata::{Metadata, MetadataCommand};

use crate::workspace::Workspace;

/// All packages of the lock file, ours among them.
pub(crate) fn read(workspace: &Workspace) -> Result<Metadata> {
    let mut command = MetadataCommand::new();
    if let Some(cargo) = std::env::var_os("CARGO") {
        command.cargo_path(cargo);
    }
    Ok(command.current_dir(workspace.root()).exec()?)
}

/// Checks that our tool for bindings and the page use the same version of wasm-bindgen: bindings of one version do not
/// load in a program built with another.
pub(crate) fn check_bindgen(metadata: &Metadata) -> Result<()> {
    let versions = |name: &str| -> Vec<&Version> {
        let found = metadata.packages.iter().filter(|package| package.name == name);
        found.map(|package| &package.version).collect()
    };
    check_versions(&versions("wasm-bindgen"), &versions("wasm-bindgen-cli-support"))
}

fn check_versions(page: &[&Version], tool: &[&Version]) -> Result<()> {
    if page.len() != 1 || page != tool {
        bail!(
            "wasm-bindgen is {} in Cargo.lock, but blockyard-bindgen makes bindings for {}: \
             write the same version in xtask/bindgen/Cargo.toml and xtask/wasm-runner/Cargo.toml",
            listed(page),
            listed(tool)
        );
    }
    Ok(())
}

fn listed(versions: &[&Version]) -> String {
    let words: Vec<_> = versions.iter().map(ToString::to_string).collect();
    if words.is_empty() { "missing".to_owned() } else { words.join(" and ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_differ_are_an_error() {
        let (old, new) = (&Version::new(0, 2, 130), &Version::new(0, 2, 131));
        assert!(check_versions(&[old], &[old]).is_ok());
        for (page, tool, message) in [
            (
                &[new][..],
                &[old][..],
                "0.2.131 in Cargo.lock, but blockyard-bindgen makes bindings for 0.2.130",
            ),
            (&[old, new], &[old], "0.2.130 and 0.2.131"),
            (&[], &[old], "missing"),
        ] {
            let error = check_versions(page, tool).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
