//! The dependency bans of the design: which of our packages may know which.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::metadata::Metadata;
use crate::workspace::Workspace;

/// Every package of ours, and those of ours that its normal and build dependencies may name.
const ALLOWED: &[(&str, &[&str])] = &[
    ("blockyard-record", &[]),
    ("blockyard-device", &["blockyard-record"]),
    ("blockyard-lock", &[]),
    ("blockyard-allocator", &["blockyard-record", "blockyard-device", "blockyard-lock"]),
    ("blockyard-workload", &["blockyard-record"]),
    ("blockyard-pytorch", &["blockyard-record", "blockyard-workload"]),
    (
        "blockyard-replay",
        &[
            "blockyard-record",
            "blockyard-device",
            "blockyard-allocator",
            "blockyard-workload",
            "blockyard-pytorch",
        ],
    ),
    (
        "blockyard-lab",
        &[
            "blockyard-record",
            "blockyard-device",
            "blockyard-workload",
            "blockyard-pytorch",
            "blockyard-replay",
        ],
    ),
    ("blockyard-figure", &["blockyard-record"]),
    ("blockyard-device-cuda", &["blockyard-record", "blockyard-device"]),
    ("blockyard-device-wgpu", &["blockyard-record", "blockyard-device"]),
    (
        "blockyard-torch-plugin",
        &[
            "blockyard-record",
            "blockyard-device",
            "blockyard-allocator",
            "blockyard-device-cuda",
            "blockyard-pytorch",
        ],
    ),
    ("blockyard-cli", NATIVE),
    ("blockyard-tests", NATIVE),
    ("blockyard-fuzz", NATIVE),
    ("blockyard-web", WASM),
    ("blockyard-gpu", &["blockyard-record", "blockyard-device", "blockyard-device-wgpu"]),
    ("blockyard-wasm-tests", WASM),
    ("blockyard-serve", &[]),
    ("blockyard-wasm-runner", &[]),
    (
        "blockyard-oracle",
        &["blockyard-record", "blockyard-device", "blockyard-allocator", "blockyard-workload"],
    ),
    ("blockyard-e2e", &["blockyard-serve"]),
    (
        "blockyard-bench-trace",
        &[
            "blockyard-record",
            "blockyard-device",
            "blockyard-allocator",
            "blockyard-workload",
            "blockyard-pytorch",
        ],
    ),
    (
        "blockyard-bench-abi",
        &[
            "blockyard-record",
            "blockyard-device",
            "blockyard-lock",
            "blockyard-allocator",
            "blockyard-bench-trace",
        ],
    ),
    (
        "blockyard-bench",
        &[
            "blockyard-record",
            "blockyard-device",
            "blockyard-allocator",
            "blockyard-workload",
            "blockyard-pytorch",
            "blockyard-replay",
            "blockyard-bench-trace",
            "blockyard-e2e",
            "blockyard-oracle",
        ],
    ),
    ("xtask", &["blockyard-serve"]),
];

/// What builds for WebAssembly.
const WASM: &[&str] = &[
    "blockyard-record",
    "blockyard-device",
    "blockyard-allocator",
    "blockyard-workload",
    "blockyard-pytorch",
    "blockyard-replay",
    "blockyard-lab",
    "blockyard-figure",
    "blockyard-device-wgpu",
];

/// All but the page.
const NATIVE: &[&str] = &[
    "blockyard-record",
    "blockyard-device",
    "blockyard-allocator",
    "blockyard-workload",
    "blockyard-pytorch",
    "blockyard-replay",
    "blockyard-lab",
    "blockyard-figure",
    "blockyard-device-cuda",
    "blockyard-device-wgpu",
];

/// Never, not even through another package: a saved snapshot draws just as well as a live run.
const UNSEEN: &[(&str, &[&str])] = &[
    ("blockyard-figure", &["blockyard-allocator", "blockyard-device"]),
    ("blockyard-allocator", &["blockyard-workload", "blockyard-figure", "blockyard-replay"]),
];

/// A backend is a package, and a shared harness lives in `tests`; neither is a feature.
const NO_FEATURE: &[&str] = &["cuda", "wgpu", "testing", "test-util"];

/// Our packages and those of ours that each depends on.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Checks the manifests of the workspace against the tables above.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let metadata = Metadata::read(workspace)?;
    let graph = graph(&metadata);
    let mut told = violations(&graph);
    told.extend(rows_without_a_package(&graph));
    for member in metadata.members() {
        for feature in NO_FEATURE.iter().filter(|feature| member.features.contains_key(**feature)) {
            told.push(format!("{} has a feature `{feature}`: make it a package", member.name));
        }
    }
    if !told.is_empty() {
        bail!("the design does not allow:\n  {}", told.join("\n  "));
    }
    println!("    {} packages depend on each other as the design says", graph.len());
    Ok(())
}

fn graph(metadata: &Metadata) -> Graph {
    let ours: BTreeSet<_> = metadata.members().map(|member| member.name.clone()).collect();
    let row = |member: &crate::metadata::Package| {
        // Tests may use anything; what ships may not.
        let shipped =
            member.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"));
        let names = shipped.map(|dependency| dependency.name.clone());
        (member.name.clone(), names.filter(|name| ours.contains(name)).collect())
    };
    metadata.members().map(row).collect()
}

fn violations(graph: &Graph) -> Vec<String> {
    let mut told = Vec::new();
    for (package, dependencies) in graph {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| name == package) else {
            told.push(format!("{package} is not in the table of xtask/src/deps.rs"));
            continue;
        };
        for dependency in dependencies.iter().filter(|name| !allowed.contains(&name.as_str())) {
            told.push(format!("{package} depends on {dependency}"));
        }
    }
    for (package, unseen) in UNSEEN {
        let reached = reached(graph, package);
        for hidden in unseen.iter().filter(|hidden| reached.contains(**hidden)) {
            told.push(format!("{package} sees {hidden}"));
        }
    }
    told
}

/// A row that outlives its package would let a new one of that name in unseen.
fn rows_without_a_package(graph: &Graph) -> Vec<String> {
    let gone = ALLOWED.iter().filter(|(name, _)| !graph.contains_key(*name));
    gone.map(|(name, _)| format!("{name} is in the table of xtask/src/deps.rs, and no package")).collect()
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

    fn told(edges: &[(&str, &[&str])]) -> Vec<String> {
        let row = |(package, dependencies): &(&str, &[&str])| {
            let names = dependencies.iter().map(|name| format!("blockyard-{name}"));
            (format!("blockyard-{package}"), names.collect())
        };
        violations(&edges.iter().map(row).collect())
    }

    #[test]
    fn the_design_itself_is_allowed() {
        let edges: &[(&str, &[&str])] = &[
            ("record", &[]),
            ("lock", &[]),
            ("allocator", &["record", "device", "lock"]),
            ("replay", &["allocator", "pytorch"]),
            ("figure", &["record"]),
            ("web", &["figure", "replay", "device-wgpu"]),
            ("cli", &["figure", "device-cuda"]),
        ];
        assert_eq!(told(edges), [""; 0]);
    }

    #[test]
    fn what_the_design_bans_is_told() {
        assert_eq!(told(&[("record", &["device"])]), ["blockyard-record depends on blockyard-device"]);
        assert_eq!(told(&[("web", &["device-cuda"])]), ["blockyard-web depends on blockyard-device-cuda"]);
        assert_eq!(told(&[("cli", &["web"])]), ["blockyard-cli depends on blockyard-web"]);
        assert_eq!(told(&[("new", &[])]), ["blockyard-new is not in the table of xtask/src/deps.rs"]);
    }

    #[test]
    fn a_row_needs_its_package() {
        let all = ALLOWED.iter().map(|(name, _)| ((*name).to_owned(), BTreeSet::new()));
        let mut graph: Graph = all.collect();
        assert_eq!(rows_without_a_package(&graph), [""; 0]);
        graph.remove("blockyard-figure");
        assert_eq!(
            rows_without_a_package(&graph),
            ["blockyard-figure is in the table of xtask/src/deps.rs, and no package"]
        );
    }

    #[test]
    fn a_ban_holds_at_any_distance() {
        let edges: &[(&str, &[&str])] =
            &[("figure", &["record"]), ("record", &["replay"]), ("replay", &["allocator"])];
        let told = told(edges);
        assert!(told.contains(&"blockyard-figure sees blockyard-allocator".to_owned()), "{told:?}");
    }

    #[test]
    fn the_table_names_only_packages_that_it_describes() {
        let known: BTreeSet<_> = ALLOWED.iter().map(|(name, _)| *name).collect();
        for (package, allowed) in ALLOWED.iter().chain(UNSEEN) {
            assert!(known.contains(package), "{package}");
            assert!(allowed.iter().all(|name| known.contains(name)), "{package}");
        }
    }

    #[test]
    fn tests_may_use_what_the_package_may_not() {
        let text = r#"{
            "packages": [
                {"id": "f", "name": "blockyard-figure", "version": "0.1.0", "features": {}, "dependencies": [
                    {"name": "serde", "kind": null},
                    {"name": "blockyard-record", "kind": null},
                    {"name": "blockyard-replay", "kind": "dev"},
                    {"name": "blockyard-device", "kind": "build"}
                ]},
                {"id": "r", "name": "blockyard-record", "version": "0.1.0", "features": {}, "dependencies": []},
                {"id": "p", "name": "blockyard-replay", "version": "0.1.0", "features": {}, "dependencies": []},
                {"id": "d", "name": "blockyard-device", "version": "0.1.0", "features": {}, "dependencies": []}
            ],
            "workspace_members": ["f", "r", "p", "d"],
            "target_directory": "target"
        }"#;
        let graph = graph(&Metadata::parse(text).unwrap());
        let figure: Vec<_> = graph["blockyard-figure"].iter().map(String::as_str).collect();
        assert_eq!(figure, ["blockyard-device", "blockyard-record"]);
    }
}
