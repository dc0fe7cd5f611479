//! Writes the tables of cuDNN's workspaces, from a file of operator calls.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use blockyard_gpus::tables;
use blockyard_torch::{Result, session};

use super::{Numbering, Observer, OperatorCall, attempt, calls, prepare_dropout};

/// The workspaces in the lines of a file of operator calls.
#[derive(Clone, Debug, Default)]
pub(super) struct LearnedSizes {
    /// The code of each configuration's size, by the hash of the configuration.
    pub(super) entries: BTreeMap<u32, u64>,
    /// Configurations that were recorded with more than one size; they are left out.
    pub(super) conflicts: BTreeSet<u32>,
}

#[derive(Default)]
struct State {
    recorded: Vec<i64>,
    first: u32,
    learned: LearnedSizes,
}

impl State {
    /// The recorded bytes of the workspace at this place of the recording; 0 if no workspace follows here.
    fn size_here(&self, at: usize, allocations: u32) -> u64 {
        let Some(size) = self.recorded.get(at).copied().and_then(|size| u64::try_from(size).ok()) else {
            return 0;
        };
        let number = i64::from(allocations - self.first) + 1;
        let is_workspace = self.recorded.get(at + 1) == Some(&-number);
        if is_workspace { size } else { 0 }
    }
}

/// Runs the convolutions of the lines, each with the recorded sizes, and collects these.
///
/// # Errors
///
/// When the session has no GPU.
pub(super) fn learn<'a>(lines: impl Iterator<Item = &'a OperatorCall>) -> Result<LearnedSizes> {
    let state = Rc::new(RefCell::new(State::default()));
    let shared = Rc::clone(&state);
    tables::set_recorder(Some(Rc::new(move |numbers, operands| {
        let session = session();
        let device = session.device(0).ok()?;
        let mut state = shared.borrow_mut();
        let size = state.size_here(device.log_count(), device.origin_count());
        let code = tables::encode(size, operands);
        let key = tables::hash(numbers);
        if state.learned.entries.insert(key, code).is_some_and(|before| before != code) {
            state.learned.conflicts.insert(key);
        }
        Some(size)
    })));
    let result = run(lines, &state);
    tables::set_recorder(None);
    result?;
    let mut learned = std::mem::take(&mut state.borrow_mut().learned);
    learned.entries.retain(|key, _| !learned.conflicts.contains(key));
    Ok(learned)
}

fn run<'a>(lines: impl Iterator<Item = &'a OperatorCall>, state: &Rc<RefCell<State>>) -> Result<()> {
    let session = session();
    let device = session.device(0)?;
    for line in lines {
        let Some(forward) = &line.forward else { continue };
        let Ok(case) = calls::case(line) else { continue };
        prepare_dropout(forward)?;
        let first = device.origin_count();
        let backward = line.backward.clone().unwrap_or_default();
        {
            let mut state = state.borrow_mut();
            state.first = first;
            state.recorded.clone_from(forward);
        }
        let observer: &Observer<'_> = &|| state.borrow_mut().recorded.clone_from(&backward);
        // A call that the crate refuses has no workspace.
        let _refused = attempt(&case, &mut Numbering { first }, line.backward.is_some(), observer);
    }
    Ok(())
}
