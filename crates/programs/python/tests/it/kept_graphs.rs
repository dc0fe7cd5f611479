//! Why a program ran out of memory, where a list of the program keeps the backward graphs of its tensors.

use crate::support::run;
use blockyard_answers::ProgramNote;

/// The note about the cause, after a program ran out of memory.
fn cause(source: &str) -> Option<ProgramNote> {
    let (_, finished) = run(source);
    assert!(finished.traceback.expect("it fails").contains("OutOfMemoryError"));
    finished.cause
}

/// A loop whose iterations make 8 GiB that the backward pass of the loss needs, on a GPU of 140 GiB.
fn program(keep: &str) -> String {
    format!(
        "import torch
weight = torch.ones(1024, 1024, device='cuda', requires_grad=True)
losses = []
for step in range(100):
    big = weight.expand(2048, 1024, 1024) * 2.0
    loss = big.square().mean()
    {keep}
    if len(losses) == 40:
        torch.empty(1 << 40, device='cuda')
"
    )
}

#[test]
fn a_list_of_losses_is_named_with_its_line_and_its_bytes() {
    let found = cause(&program("losses.append(loss)")).expect("the list keeps the graphs");
    assert_eq!(found.line, 7);
    // The graph of the last loss has a shorter name, `loss`, and is not counted.
    let words = "`losses` keeps the backward graphs of 15 tensors, and the graphs keep 120 GiB of the 136 GiB that the program holds";
    assert!(found.text.starts_with(words), "{}", found.text);
}

#[test]
fn names_of_a_function_count_that_the_exception_has_ended() {
    let text = program("losses.append(loss)").replace('\n', "\n    ");
    let found = cause(&format!("def train():\n    {text}\ntrain()\n")).expect("the list keeps the graphs");
    assert_eq!(found.line, 8);
}

#[test]
fn numbers_and_tensors_without_a_graph_are_no_cause() {
    assert_eq!(cause(&program("losses.append(loss.detach())")), None);
    assert_eq!(cause(&program("losses.append(loss.item())")), None);
}

#[test]
fn memory_that_has_names_is_no_cause() {
    assert_eq!(
        cause("import torch\nkept = []\nwhile True:\n    kept.append(torch.empty(1 << 31, device='cuda'))\n"),
        None
    );
}

#[test]
fn a_program_that_ends_otherwise_has_no_cause() {
    let (_, finished) = run("losses = []\nlosses[3]\n");
    assert_eq!((finished.status, finished.cause), (1, None));
}

/// What a program prints that calls the parts of our own `_kept_graphs`.
fn printed(source: &str) -> String {
    run(&format!("from _kept_graphs import *\nfrom _reasons import Reason\n{source}")).0
}

#[test]
fn a_name_leads_to_its_list() {
    let source = "
for name in 'losses[12]', 'pairs[3][0] in train', \"kept['first'][0]\", 'loss', \"kept['x']\", 'a[':
    print(*element(name))
";
    assert_eq!(printed(source), "losses 12\npairs 3\nkept['first'] 0\nNone None\nNone None\nNone None\n");
}

#[test]
fn only_graphs_of_one_list_make_a_block_that_of_the_list() {
    let source = "
def saved(graph):
    return Reason('saved by MulBackward0', 'saved', graph)
for reasons in [saved('a[1]'), saved('a[2]')], [saved('a[1]'), saved('b[2]')], [saved('a[1]'), Reason('x', 'name')], []:
    name, places = list_of(reasons)
    print(name, len(places))
";
    assert_eq!(printed(source), "a 2\nNone 2\nNone 2\nNone 0\n");
}

#[test]
fn a_line_appends_if_it_is_the_only_one() {
    let source = "
print(appending_line(['a = []', 'for x in y:', '    a.append(x)'], 'a'), appending_line(['a.append(1)', 'a.append(2)'], 'a'))
";
    assert_eq!(printed(source), "3 0\n");
}
