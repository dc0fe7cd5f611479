//! Which nodes of PyTorch's list of derivatives no operator of ours makes: `missing_nodes.txt`.

use crate::autograd::missing_nodes;

#[test]
fn the_list_of_missing_nodes_is_what_is_missing() {
    let written = include_str!("../autograd/missing_nodes.txt");
    let missing = missing_nodes();
    println!("{} nodes of PyTorch's list are missing", missing.len());
    assert_eq!(
        written.lines().collect::<Vec<_>>(),
        missing,
        "run `cargo xtask update nodes` and look at what changed"
    );
}
