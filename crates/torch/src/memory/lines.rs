//! Lines of a program as the stacks of a recording.

use std::sync::Arc;

use blockyard_record::{Recorder, StackId, Stacks};
use rustc_hash::FxHashMap;

use super::Origin;

/// Gives each allocation a stack of one frame: its line of `file`. Which function the line is in is not known.
pub(super) fn set(recorder: &mut Recorder, file: &str, origins: &[Origin]) {
    let mut stacks = Stacks::default();
    let mut of_lines: FxHashMap<u32, StackId> = FxHashMap::default();
    for origin in origins.iter().filter(|origin| origin.line > 0) {
        let Some(allocation) = origin.allocation else { continue };
        let stack = *of_lines
            .entry(origin.line)
            .or_insert_with(|| line_stack(&mut stacks, file, origin.line).unwrap_or_default());
        recorder.set_allocation_stack(allocation, stack);
    }
    recorder.set_stacks(Arc::new(stacks));
}

fn line_stack(stacks: &mut Stacks, file: &str, line: u32) -> Option<StackId> {
    let (name, file) = (stacks.intern_text("")?, stacks.intern_text(file)?);
    let frame = stacks.intern_frame(name, file, line)?;
    stacks.intern_stack(&[frame.get()])
}
