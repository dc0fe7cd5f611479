//! What operators save for the backward pass, member by member, beside PyTorch.

use crate::support::run;

#[test]
fn nodes_save_what_those_of_pytorch_save() {
    let (printed, finished) = run(include_str!("../saved.py"));
    assert_eq!(finished.traceback, None);
    let expected = include_str!("../saved.txt");
    let differences: Vec<String> = printed
        .lines()
        .zip(expected.lines())
        .filter(|(ours, pytorchs)| ours != pytorchs)
        .map(|(ours, pytorchs)| format!("{ours} | {pytorchs}"))
        .collect();
    assert_eq!(printed.lines().count(), expected.lines().count());
    // What differs: ours beside PyTorch's, under the reason.
    let known: Vec<&str> = include_str!("../saved_differences.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let new: Vec<&String> = differences.iter().filter(|line| !known.contains(&line.as_str())).collect();
    assert!(new.is_empty(), "{} more differ:\n{new:#?}", new.len());
    let gone: Vec<&&str> =
        known.iter().filter(|line| !differences.iter().any(|found| found == *line)).collect();
    assert!(gone.is_empty(), "these differ no more:\n{gone:#?}");
}
