//! Which of our packages may depend on which: the table of docs/dependencies.md, compared with the manifests.
//!
//! A row names packages by their folders. Its last column names the packages of ours that may be their normal
//! and build dependencies: folders of `crates/` by their last part, other folders whole, `nothing`, or `` any
//! of `crates` ``. In the last form, `but` precedes exceptions, and `; also` further packages.
//!
//! ARCHITECTURE.md says what each package holds, and has to name each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::{DependencyKind, Metadata, PackageId};

use crate::metadata;
use crate::workspace::Workspace;

/// Packages that must never see others, not even through a third package: a saved snapshot draws as well as a
/// live run.
const NEVER_SEEN: &[(&str, &[&str])] = &[
    ("crates/figure", &["crates/allocator", "crates/device"]),
    ("crates/pytorch", &["crates/allocator"]),
    ("crates/allocator", &["crates/workload", "crates/figure", "crates/replay"]),
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

/// The first cells of the table's head.
const HEAD: &str = "| package | may use, of ours |";

/// From the folder of each package to the folders of the packages that it depends on, or may depend on.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The file of the table.
const TABLE_FILE: &str = "docs/dependencies.md";

/// Checks the manifests of the workspace against the table, and that the map of the code has each package.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let metadata = metadata::read(workspace)?;
    let graph = graph(&metadata);
    let text = read(workspace, TABLE_FILE)?;
    let allowed =
        table(&text, &graph.keys().cloned().collect()).context("the table of docs/dependencies.md")?;
    let mut found = violations(&graph, &allowed);
    found.extend(missing_packages(&read(workspace, "ARCHITECTURE.md")?, &graph));
    for member in metadata.workspace_packages() {
        for feature in NO_FEATURE.iter().filter(|feature| member.features.contains_key(**feature)) {
            found.push(format!("{} has a feature `{feature}`: make it a package", member.name));
        }
    }
    found.extend(clients(&shipped_packages(&metadata)));
    if !found.is_empty() {
        bail!("the design does not allow:\n  {}", found.join("\n  "));
    }
    println!("    {} packages depend on each other as {TABLE_FILE} says", graph.len());
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

/// The rows of the table, with every folder that they name among `known`.
fn table(text: &str, known: &BTreeSet<String>) -> Result<Graph> {
    let lines = text.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
    let mut allowed = Graph::new();
    for line in lines.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [packages, uses] = cells.as_slice() else { bail!("not two cells: {line}") };
        let uses = used(uses, known).with_context(|| format!("the row of {packages}"))?;
        for package in quoted(packages) {
            ensure!(known.contains(package), "there is no package in {package}");
            ensure!(allowed.insert(package.to_owned(), uses.clone()).is_none(), "two rows for {package}");
        }
    }
    ensure!(!allowed.is_empty(), "there is no line that begins with `{HEAD}`");
    Ok(allowed)
}

/// The folders that the last cell of a row names.
fn used(cell: &str, known: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    if cell == "nothing" {
        return Ok(BTreeSet::new());
    }
    let named = |part: &str| -> Result<BTreeSet<String>> {
        quoted(part)
            .map(|name| {
                let whole = [format!("crates/{name}"), name.to_owned()];
                whole
                    .into_iter()
                    .find(|folder| known.contains(folder))
                    .with_context(|| format!("no `{name}`"))
            })
            .collect()
    };
    if let Some(rest) = cell.strip_prefix("any of `crates`") {
        let (left_out, more) = rest.split_once("; also").unwrap_or((rest, ""));
        let left_out = named(left_out)?;
        let crates = known.iter().filter(|folder| folder.starts_with("crates/"));
        let crates = crates.filter(|folder| !left_out.contains(*folder)).cloned();
        return Ok(crates.chain(named(more)?).collect());
    }
    let folders = named(cell)?;
    ensure!(!folders.is_empty(), "`{cell}` names no package");
    Ok(folders)
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn violations(graph: &Graph, allowed: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for (package, dependencies) in graph {
        let Some(allowed) = allowed.get(package) else {
            found.push(format!("{package} has no row in {TABLE_FILE}"));
            continue;
        };
        found.extend(dependencies.difference(allowed).map(|other| format!("{package} depends on {other}")));
    }
    for (package, hidden) in NEVER_SEEN {
        let reached = reached(graph, package);
        let seen = hidden.iter().filter(|hidden| reached.contains(**hidden));
        found.extend(seen.map(|hidden| format!("{package} sees {hidden}")));
    }
    found
}

/// The shipped dependencies of each package of the lock file, by name.
fn shipped_packages(metadata: &Metadata) -> Graph {
    let name = |id: &PackageId| {
        metadata.packages.iter().find(|package| package.id == *id).map(|package| package.name.to_string())
    };
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let rows = nodes.filter_map(|node| {
        let shipped = node
            .deps
            .iter()
            .filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
        Some((
            name(&node.id)?,
            shipped.filter_map(|dependency| name(&dependency.pkg)).collect::<BTreeSet<_>>(),
        ))
    });
    let mut graph = Graph::new();
    // Two versions of a package count as one.
    for (name, shipped) in rows {
        graph.entry(name).or_default().extend(shipped);
    }
    graph
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

    const TABLE: &str = "\
Words before.

| package | may use, of ours |
| --- | --- |
| `crates/record` | nothing |
| `crates/device`, `crates/figure` | `record` |
| `crates/allocator` | `record`, `device` |
| `web` | any of `crates` but `device` |

| `xtask` | nothing, in another table |
";

    fn graph_of(edges: &[(&str, &[&str])]) -> Graph {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges.iter().map(|(package, dependencies)| ((*package).to_owned(), names(dependencies))).collect()
    }

    fn known() -> BTreeSet<String> {
        ["crates/record", "crates/device", "crates/figure", "crates/allocator", "web"]
            .map(str::to_owned)
            .into()
    }

    fn found(edges: &[(&str, &[&str])]) -> Vec<String> {
        violations(&graph_of(edges), &table(TABLE, &known()).unwrap())
    }

    #[test]
    fn the_table_is_read() {
        let expected = graph_of(&[
            ("crates/record", &[]),
            ("crates/device", &["crates/record"]),
            ("crates/figure", &["crates/record"]),
            ("crates/allocator", &["crates/record", "crates/device"]),
            ("web", &["crates/record", "crates/figure", "crates/allocator"]),
        ]);
        assert_eq!(table(TABLE, &known()).unwrap(), expected);
    }

    #[test]
    fn what_the_table_allows_passes_and_nothing_else() {
        assert_eq!(found(&[("crates/allocator", &["crates/device"]), ("web", &["crates/figure"])]), [""; 0]);
        assert_eq!(
            found(&[("crates/record", &["crates/device"])]),
            ["crates/record depends on crates/device"]
        );
        assert_eq!(found(&[("web", &["crates/device"])]), ["web depends on crates/device"]);
        assert_eq!(found(&[("crates/new", &[])]), ["crates/new has no row in docs/dependencies.md"]);
    }

    #[test]
    fn a_package_that_the_map_does_not_name_is_found() {
        let graph = graph_of(&[("crates/record", &[]), ("web", &[])]);
        assert_eq!(
            missing_packages("`crates/records`, `web`: web", &graph),
            ["ARCHITECTURE.md does not name crates/record"]
        );
    }

    #[test]
    fn a_ban_holds_at_any_distance() {
        let found = found(&[
            ("crates/figure", &["crates/record"]),
            ("crates/record", &["crates/replay"]),
            ("crates/replay", &["crates/allocator"]),
        ]);
        assert!(found.contains(&"crates/figure sees crates/allocator".to_owned()), "{found:?}");
    }

    #[test]
    fn what_users_run_has_no_client_at_any_distance() {
        let graph = graph_of(&[("blockyard-cli", &["png"]), ("png", &["ureq"]), ("xtask", &["minreq"])]);
        assert_eq!(clients(&graph), ["blockyard-cli sees ureq, which opens connections"]);
        let metadata = metadata::read(&Workspace::find()).unwrap();
        let shipped = shipped_packages(&metadata);
        assert!(reached(&shipped, "blockyard-cli").len() > 100, "the packages of the lock file are known");
        assert_eq!(clients(&shipped), [""; 0]);
    }

    #[test]
    fn a_row_that_cannot_be_read_is_an_error() {
        let rows = |row: &str| {
            let text = format!("{HEAD}\n| --- | --- |\n{row}\n");
            format!("{:#}", table(&text, &known()).unwrap_err())
        };
        assert_eq!(rows("| `crates/gone` | nothing |"), "there is no package in crates/gone");
        assert_eq!(rows("| `web` | `gone` |"), "the row of `web`: no `gone`");
        assert_eq!(rows("| `web` | what it needs |"), "the row of `web`: `what it needs` names no package");
        assert_eq!(rows("| `web` | | nothing |"), "not two cells: | `web` | | nothing |");
        assert_eq!(rows("| `web` | nothing |\n| `web` | nothing |"), "two rows for web");
        assert!(table("no table", &known()).is_err());
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
        assert!(!graph(&metadata)["crates/torch-plugin"].contains("crates/replay"));
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
