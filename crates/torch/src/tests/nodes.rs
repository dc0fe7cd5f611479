//! Which nodes of PyTorch's list of derivatives no operator of ours makes: `missing_nodes.txt`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::autograd::DERIVATIVES;

fn sources(folder: &Path, found: &mut String) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if !path.ends_with("tests") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// Nodes of copies of views and of nested tensors: no program that calls PyTorch's functions meets them.
fn is_inner(node: &str) -> bool {
    node.ends_with("_copy") || node.contains("NestedTensor")
}

#[test]
fn the_list_of_missing_nodes_is_what_is_missing() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut text = String::new();
    sources(&root, &mut text);
    let named: BTreeSet<&str> = text.split('"').collect();
    let nodes: Vec<&str> = DERIVATIVES.lines().filter_map(|line| line.split(' ').next()).collect();
    let missing: Vec<&str> =
        nodes.iter().copied().filter(|node| !is_inner(node) && !named.contains(node)).collect();
    let list = root.join("autograd/missing_nodes.txt");
    if std::env::var_os("UPDATE_FLOORS").is_some() {
        std::fs::write(&list, format!("{}\n", missing.join("\n"))).unwrap();
    }
    let written = std::fs::read_to_string(&list).unwrap();
    let counted = nodes.iter().filter(|node| !is_inner(node)).count();
    println!("{} of {counted} nodes of PyTorch's list are missing", missing.len());
    assert_eq!(
        written.lines().collect::<Vec<_>>(),
        missing,
        "run `cargo xtask update nodes` and look at what changed"
    );
}
