//! Why a program ran out of memory, where one of its lists is the cause: a list of tensors keeps the backward
//! graph of each tensor, and the graphs keep the activations of all iterations.
//!
//! The graphs and the names that lead to them are those of the interpreter at the exception, so each byte is
//! counted and not guessed. Whether the program would have fit without the list is not known, and the text
//! does not claim it.

use std::collections::{BTreeMap, BTreeSet};

use blockyard_record::Bytes;
use blockyard_torch::session;
use rustpython_vm::VirtualMachine;
use rustpython_vm::builtins::{PyBaseExceptionRef, PyDictRef};

use crate::host::ProgramNote;
use crate::referrers::{self, Reason};
use crate::traceback;

/// A list is a cause if its graphs hold at least one part in `PART` of the allocated bytes.
const PART: u64 = 4;

/// The list whose graphs hold the most memory of the first GPU, as a remark. `None` unless the program ran
/// out of memory and the graphs hold enough of it (see [`PART`]).
pub(crate) fn cause(
    vm: &VirtualMachine,
    exception: &PyBaseExceptionRef,
    globals: Option<&PyDictRef>,
    source: &str,
) -> Option<ProgramNote> {
    if !traceback::last_line(vm, exception).starts_with("torch.OutOfMemoryError") {
        return None;
    }
    let reasons = referrers::at_exception(vm, exception, globals);
    let session = session();
    let origins = session.device(0).ok()?.origins();
    let requested = |number: u32| Some(origins.get(usize::try_from(number).ok()?)?.requested);
    let mut lists: BTreeMap<&str, ListMemory> = BTreeMap::new();
    for (number, reasons) in &reasons {
        let Some((name, indices)) = list_of(reasons) else { continue };
        let list = lists.entry(name).or_default();
        list.indices.extend(indices);
        list.bytes = list.bytes.saturating_add(requested(*number).unwrap_or_default());
    }
    let (name, list) = lists.iter().max_by_key(|(_, list)| list.bytes)?;
    let allocated: Bytes = reasons.keys().filter_map(|number| requested(*number)).sum();
    if list.indices.len() < 2 || list.bytes.get().saturating_mul(PART) < allocated.get() {
        return None;
    }
    Some(ProgramNote {
        line: appending_line(source, name).unwrap_or_default(),
        text: format!(
            "`{name}` keeps the backward graphs of {} tensors, and the graphs keep {} of the {allocated} that the program holds. Append what \
             `.item()` returns, a number, or what `.detach()` returns, a tensor without its graph",
            list.indices.len(),
            list.bytes
        ),
    })
}

/// The memory that the graphs of a list's tensors keep.
#[derive(Default)]
struct ListMemory {
    indices: BTreeSet<String>,
    bytes: Bytes,
}

/// The list, and its places, whose graphs alone keep a block. `None` where anything else keeps the block too,
/// since the block would then be alive without the list.
fn list_of(reasons: &[Reason]) -> Option<(&str, Vec<String>)> {
    let mut name = None;
    let mut indices = Vec::new();
    for reason in reasons {
        let Reason::Saved { graph_of, .. } = reason else { return None };
        let (list, index) = element(graph_of)?;
        if *name.get_or_insert(list) != list {
            return None;
        }
        indices.push(index.to_owned());
    }
    Some((name?, indices))
}

/// The list and the index of a name such as `losses[3]`, `losses[3] in train` or `self.pairs[3][0]`.
fn element(name: &str) -> Option<(&str, &str)> {
    name.match_indices('[').find_map(|(at, _)| {
        let index = name.get(at + 1..)?.split(']').next()?;
        let is_number = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
        Some((name.get(..at)?, index)).filter(|_| is_number)
    })
}

/// The line that appends to the list, counted from 1, if the text has exactly one such line.
fn appending_line(source: &str, list: &str) -> Option<u32> {
    let appends = format!("{list}.append(");
    let mut found = source.lines().zip(1..).filter(|(line, _)| line.trim_start().starts_with(&appends));
    let (_, line) = found.next()?;
    found.next().is_none().then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_its_list() {
        assert_eq!(element("losses[12]"), Some(("losses", "12")));
        assert_eq!(element("pairs[3][0] in train"), Some(("pairs", "3")));
        assert_eq!(element("kept['first'][0]"), Some(("kept['first']", "0")));
        assert_eq!((element("loss"), element("kept['x']"), element("a[")), (None, None, None));
    }

    #[test]
    fn only_graphs_of_one_list_make_a_block_that_of_the_list() {
        let saved = |graph_of: &str| Reason::Saved {
            node: "MulBackward0",
            member: None,
            graph_of: graph_of.to_owned(),
        };
        let of =
            |reasons: &[Reason]| list_of(reasons).map(|(name, indices)| (name.to_owned(), indices.len()));
        assert_eq!(of(&[saved("a[1]"), saved("a[2]")]), Some(("a".to_owned(), 2)));
        assert_eq!(of(&[saved("a[1]"), saved("b[2]")]), None);
        assert_eq!(of(&[saved("a[1]"), Reason::Name("x".to_owned())]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_line_appends_if_it_is_the_only_one() {
        assert_eq!(appending_line("a = []\nfor x in y:\n    a.append(x)\n", "a"), Some(3));
        assert_eq!(appending_line("a.append(1)\na.append(2)\n", "a"), None);
    }
}
