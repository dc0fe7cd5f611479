//! Which of our packages may depend on which. A package uses packages of its own group and of the groups
//! above it; the folders of `crates` are the groups, in the order of [`GROUPS`]. Some packages must never see
//! others, whatever their group.
//!
//! ARCHITECTURE.md says what each package holds, and has to name each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::{DependencyKind, Metadata};

use crate::metadata;
use crate::workspace::Workspace;

/// The groups from base to ends: the beginnings of folders. The longest beginning that fits counts.
const GROUPS: &[&[&str]] = &[
    &["crates/base/"],
    &["crates/core/"],
    // The messages between the page and its Python.
    &["crates/programs/", "web/program"],
    &["crates/ask/"],
    &["crates/show/"],
    &["crates/ends/"],
    &["web"],
    &["tests", "xtask"],
];

/// Packages that must never see others, not even through a third package: a saved snapshot draws as well as a
/// live run.
const NEVER_SEEN: &[(&str, &[&str])] = &[
    ("crates/base/rules", &["crates/base/record"]),
    ("crates/base/record", &["crates/base/device", "crates/base/gpus", "crates/base/answers"]),
    ("crates/base/answers", &["crates/base/device", "crates/base/gpus"]),
    ("crates/core/allocator", &["crates/core/workload", "crates/core/pytorch", "crates/core/replay"]),
    ("crates/core/workload", &["crates/core/allocator"]),
    ("crates/core/pytorch", &["crates/core/allocator", "crates/base/device"]),
    ("crates/show/figure", &["crates/core/allocator", "crates/base/device"]),
    ("crates/show/render", &["crates/core/allocator"]),
    ("crates/programs/torch", &["crates/core/replay", "crates/show/figure"]),
    ("crates/programs/standin", &["crates/core/allocator"]),
    ("crates/programs/dry-run", &["crates/core/allocator"]),
    ("crates/programs/watch", &["crates/core/allocator"]),
    ("crates/ends/torch-plugin", &["crates/core/replay", "crates/show/figure"]),
    ("web", &["crates/ends/cli", "crates/ends/torch-plugin", "crates/base/device/cuda"]),
    ("web/gpu", &["crates/core/allocator"]),
    // It starts without the packages that it builds.
    ("xtask", &["crates/base/rules", "crates/base/record", "xtask/bindgen"]),
];

/// Features that no package may have: a backend is a package, and shared test code is in `tests`.
const NO_FEATURE: &[&str] = &["cuda", "wgpu", "testing", "test-util"];

/// Packages for users that open no connection to another machine, as SECURITY.md promises. The page has a
/// policy for this, which a test in `tests` reads.
const OFFLINE: &[&str] = &["blockyard-cli", "blockyard-wheel", "blockyard-torch-plugin"];

/// Packages that open connections.
const CLIENTS: &[&str] = &[
    "attohttpc",
    "curl",
    "hyper",
    "isahc",
    "minreq",
    "native-tls",
    "openssl",
    "quinn",
    "reqwest",
    "rustls",
    "socket2",
    "surf",
    "tungstenite",
    "ureq",
];

/// From the folder of each package to the folders of the packages that it depends on.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Checks the manifests of the workspace, and that the map of the code has each package.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let metadata = metadata::read(workspace)?;
    let graph = graph(&metadata);
    let mut found = violations(&graph);
    found.extend(missing_packages(&read(workspace, "ARCHITECTURE.md")?, &graph));
    for member in metadata.workspace_packages() {
        for feature in NO_FEATURE.iter().filter(|feature| member.features.contains_key(**feature)) {
            found.push(format!("{} has a feature `{feature}`: make it a package", member.name));
        }
    }
    found.extend(clients(&shipped_packages(workspace)?));
    if !found.is_empty() {
        bail!("the design does not allow:\n  {}", found.join("\n  "));
    }
    println!("    {} packages use those of their own group and above", graph.len());
    Ok(())
}

fn read(workspace: &Workspace, name: &str) -> Result<String> {
    let file = workspace.root().join(name);
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// Sentences about packages that a text does not name.
fn missing_packages(text: &str, graph: &Graph) -> Vec<String> {
    let named: BTreeSet<&str> = quoted(text).collect();
    let missing = graph.keys().filter(|package| !named.contains(package.as_str()));
    missing.map(|package| format!("ARCHITECTURE.md does not name {package}")).collect()
}

/// The dependencies of the manifests.
fn graph(metadata: &Metadata) -> Graph {
    let root = &metadata.workspace_root;
    let folder = |manifest: &cargo_metadata::camino::Utf8Path| {
        let folder = manifest.parent().unwrap_or(manifest);
        folder.strip_prefix(root).unwrap_or(folder).to_string()
    };
    let members = metadata.workspace_packages();
    let folders: BTreeMap<&str, String> =
        members.iter().map(|member| (member.name.as_str(), folder(&member.manifest_path))).collect();
    let row = |member: &&cargo_metadata::Package| {
        // Only code that ships is restricted; tests may use any package.
        let shipped =
            member.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development);
        let ours = shipped.filter_map(|dependency| folders.get(dependency.name.as_str()).cloned());
        (folder(&member.manifest_path), ours.collect())
    };
    members.iter().map(row).collect()
}

/// The place of the package's group in [`GROUPS`].
fn group(package: &str) -> Option<usize> {
    let fitting = GROUPS.iter().enumerate().flat_map(|(place, beginnings)| {
        let fitting = beginnings.iter().filter(|beginning| package.starts_with(**beginning));
        fitting.map(move |beginning| (beginning.len(), place))
    });
    fitting.max().map(|(_, place)| place)
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn violations(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for (package, dependencies) in graph {
        let Some(own) = group(package) else {
            found.push(format!("{package} is in none of the groups"));
            continue;
        };
        let below = dependencies.iter().filter(|other| group(other).is_none_or(|group| group > own));
        found.extend(below.map(|other| format!("{package} depends on {other}")));
    }
    for (package, hidden) in NEVER_SEEN {
        let reached = reached(graph, package);
        let seen = hidden.iter().filter(|hidden| reached.contains(**hidden));
        found.extend(seen.map(|hidden| format!("{package} sees {hidden}")));
    }
    found
}

/// From each package of [`OFFLINE`] to all packages that it ships with, at any distance. Each is resolved alone:
/// the features that other packages want of a package are not in its program.
fn shipped_packages(workspace: &Workspace) -> Result<Graph> {
    let row = |package: &&str| {
        let tree = ["tree", "--edges", "normal", "--target", "all", "--prefix", "none", "--package", package];
        let output = workspace.cargo(tree).output().context("cargo tree")?;
        ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout)?;
        let names = lines.lines().filter_map(|line| line.split_whitespace().next());
        Ok(((*package).to_owned(), names.map(str::to_owned).collect()))
    };
    OFFLINE.iter().map(row).collect()
}

/// Sentences about packages that stay offline and ship with a package that opens connections.
fn clients(graph: &Graph) -> Vec<String> {
    let seen = OFFLINE.iter().flat_map(|package| {
        let reached = reached(graph, package);
        let clients = CLIENTS.iter().filter(move |client| reached.contains(**client));
        clients.map(move |client| format!("{package} sees {client}, which opens connections"))
    });
    seen.collect()
}

/// All packages of ours that `package` depends on, at any distance.
fn reached<'graph>(graph: &'graph Graph, package: &'graph str) -> BTreeSet<&'graph str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![package];
    while let Some(name) = open.pop() {
        for next in graph.get(name).into_iter().flatten() {
            if reached.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph_of(edges: &[(&str, &[&str])]) -> Graph {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges.iter().map(|(package, dependencies)| ((*package).to_owned(), names(dependencies))).collect()
    }

    #[test]
    fn a_package_uses_its_own_group_and_those_above() {
        let found = |edges: &[(&str, &[&str])]| violations(&graph_of(edges));
        let allowed: &[(&str, &[&str])] = &[
            ("crates/core/allocator", &["crates/base/device"]),
            ("crates/core/replay", &["crates/core/allocator"]),
            ("crates/programs/python/extension", &["web/program"]),
            ("web", &["crates/show/figure", "crates/ends/serve"]),
        ];
        assert_eq!(found(allowed), [""; 0]);
        assert_eq!(
            found(&[("crates/base/record", &["crates/core/pytorch"])]),
            ["crates/base/record depends on crates/core/pytorch"]
        );
        assert_eq!(found(&[("crates/new", &[])]), ["crates/new is in none of the groups"]);
    }

    #[test]
    fn every_ban_names_packages_that_exist() {
        let graph = graph(&metadata::read(&Workspace::find()).unwrap());
        for (package, hidden) in NEVER_SEEN {
            for name in [package].into_iter().chain(*hidden) {
                assert!(graph.contains_key(*name), "{name}");
            }
        }
    }

    #[test]
    fn a_package_that_the_map_does_not_name_is_found() {
        let graph = graph_of(&[("crates/base/record", &[]), ("web", &[])]);
        assert_eq!(
            missing_packages("`crates/records`, `web`: web", &graph),
            ["ARCHITECTURE.md does not name crates/base/record"]
        );
    }

    #[test]
    fn a_ban_holds_at_any_distance() {
        let found = violations(&graph_of(&[
            ("crates/show/figure", &["crates/base/record"]),
            ("crates/base/record", &["crates/core/replay"]),
            ("crates/core/replay", &["crates/core/allocator"]),
        ]));
        assert!(found.contains(&"crates/show/figure sees crates/core/allocator".to_owned()), "{found:?}");
    }

    #[test]
    fn what_users_run_has_no_client_at_any_distance() {
        let graph = graph_of(&[("blockyard-cli", &["png"]), ("png", &["ureq"]), ("xtask", &["minreq"])]);
        assert_eq!(clients(&graph), ["blockyard-cli sees ureq, which opens connections"]);
        let shipped = shipped_packages(&Workspace::find()).unwrap();
        assert!(shipped["blockyard-cli"].len() > 100, "all packages are known");
        assert_eq!(clients(&shipped), [""; 0]);
    }

    #[test]
    fn tests_may_use_what_the_package_may_not() {
        let workspace = Workspace::find();
        let metadata = metadata::read(&workspace).unwrap();
        let plugin =
            metadata.packages.iter().find(|package| package.name == "blockyard-torch-plugin").unwrap();
        let kinds: Vec<_> = plugin
            .dependencies
            .iter()
            .filter(|dependency| dependency.name == "blockyard-replay")
            .map(|dependency| dependency.kind)
            .collect();
        assert_eq!(kinds, [DependencyKind::Development]);
        assert!(!graph(&metadata)["crates/ends/torch-plugin"].contains("crates/core/replay"));
    }

    /// The names of a text with the file that each is in: `` `NAME` in `FILE` ``.
    fn names_with_files(text: &str) -> Vec<(&str, &str)> {
        let parts: Vec<&str> = text.split('`').collect();
        // Words in backticks are the parts with an odd number.
        let triples = parts.windows(3).skip(1).step_by(2);
        triples.filter(|part| part[1] == " in ").map(|part| (part[0], part[2])).collect()
    }

    #[test]
    fn what_the_documents_about_the_code_name_exists() {
        let workspace = Workspace::find();
        // A release that is to come, and a lesson that is to be written.
        let is_pattern = |word: &str| word.contains("NEW") || word.contains("NN-") || word == "//!";
        let is_path = |word: &&str| word.contains('/') && !word.contains(' ') && !is_pattern(word);
        let (mut missing, mut count) = (Vec::new(), 0);
        for document in ["ARCHITECTURE.md", "docs/changes.md"] {
            // Lines are joined, because words in backticks may go over the end of a line.
            let text = read(&workspace, document).unwrap();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let paths: Vec<&str> = quoted(&text).filter(is_path).collect();
            count += paths.len();
            missing.extend(
                paths
                    .iter()
                    .filter(|path| !workspace.root().join(path).exists())
                    .map(|path| format!("{path}, which {document} names")),
            );
            for (name, path) in names_with_files(&text).into_iter().filter(|(_, path)| is_path(path)) {
                let file = fs::read_to_string(workspace.root().join(path)).unwrap_or_default();
                if !file.is_empty() && !file.contains(name) {
                    missing.push(format!("{name} in {path}, which {document} names"));
                }
            }
        }
        assert!(missing.is_empty(), "{missing:#?}");
        assert!(count > 200, "{count}");
    }
}
