//! Lines of a program as the stacks of a recording.

use std::sync::Arc;

use blockyard_record::{Recorder, StackId, Stacks, WORKSPACE_FRAME};
use rustc_hash::FxHashMap;

use super::{Category, Origin};

/// Gives each allocation a stack: its line of `file`, and above it the frame of a library that keeps the
/// memory to work in. Which function the line is in is not known.
pub(super) fn set(recorder: &mut Recorder, file: &str, origins: &[Origin]) {
    let mut stacks = Stacks::default();
    let mut of_lines: FxHashMap<(u32, bool), StackId> = FxHashMap::default();
    for origin in origins.iter().filter(|origin| origin.line > 0) {
        let Some(allocation) = origin.allocation else { continue };
        let is_workspace = origin.category == Category::Workspace;
        let stack = *of_lines
            .entry((origin.line, is_workspace))
            .or_insert_with(|| line_stack(&mut stacks, file, origin.line, is_workspace).unwrap_or_default());
        recorder.set_allocation_stack(allocation, stack);
    }
    recorder.set_stacks(Arc::new(stacks));
}

fn line_stack(stacks: &mut Stacks, file: &str, line: u32, is_workspace: bool) -> Option<StackId> {
    let (name, file) = (stacks.intern_text("")?, stacks.intern_text(file)?);
    let frame = stacks.intern_frame(name, file, line)?.get();
    if !is_workspace {
        return stacks.intern_stack(&[frame]);
    }
    let library = stacks.intern_text(WORKSPACE_FRAME)?;
    let library = stacks.intern_frame(library, name, 0)?.get();
    stacks.intern_stack(&[library, frame])
}
