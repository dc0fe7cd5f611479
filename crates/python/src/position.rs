//! Where in the program the interpreter is.

use rustpython_vm::VirtualMachine;

use crate::host;

/// Whether code is the program's, not that of our own Python.
pub(crate) fn is_program(path: &str) -> bool {
    host::with(|host| host.file == path).unwrap_or(false)
}

/// The line of the program that runs, counted from 1; 0 before the first.
pub(crate) fn current_line(vm: &VirtualMachine) -> u32 {
    let frames = vm.frames.borrow();
    for frame in frames.iter().rev() {
        #[expect(unsafe_code, reason = "the interpreter hands out its stack of frames as pointers")]
        // SAFETY: a frame stays alive while it is on the interpreter's stack, which is borrowed here.
        let frame = unsafe { frame.as_ref() };
        if !is_program(frame.code.source_path().as_str()) {
            continue;
        }
        // `lasti` is the instruction that comes next; the one before is running.
        let instruction = usize::try_from(frame.lasti()).unwrap_or(0).saturating_sub(1);
        let location = frame.code.locations.get(instruction);
        return location.map_or(0, |(start, _end)| u32::try_from(start.line.get()).unwrap_or(u32::MAX));
    }
    0
}
