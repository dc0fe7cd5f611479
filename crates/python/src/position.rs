//! Where in the program the interpreter is.

use rustpython_vm::VirtualMachine;
use rustpython_vm::builtins::PyCode;
use rustpython_vm::bytecode::{BinaryOperator, CommonConstant, Instruction, find_exception_handler};

use crate::host;

/// Whether code belongs to the program's own file.
pub(crate) fn is_program(path: &str) -> bool {
    host::with(|host| host.file == path).unwrap_or(false)
}

/// Whether code is that of the program or of a module beside the program, and not that of this crate's own
/// Python.
pub(crate) fn is_own(path: &str) -> bool {
    host::with(|host| host.file == path || host.modules.contains_key(path)).unwrap_or(false)
}

/// Whether the program asserts the truth of the value that it computes at this moment: the next instructions
/// raise an `AssertionError` unless the value is true.
pub(crate) fn is_asserted(vm: &VirtualMachine) -> bool {
    at_instruction(vm, |code, at| {
        let next = (at + 1..code.instructions.len()).map(|index| code.instructions.get(index));
        for unit in next.map_while(|unit| unit) {
            match unit.op {
                Instruction::Cache
                | Instruction::ToBool
                | Instruction::NotTaken
                | Instruction::ExtendedArg
                | Instruction::PopJumpIfTrue { .. } => {}
                Instruction::LoadCommonConstant { .. } => {
                    return u8::from(unit.arg) == u8::from(CommonConstant::AssertionError);
                }
                _ => return false,
            }
        }
        false
    })
}

/// Whether the program looks up an element (`values[index]`) at this moment.
pub(crate) fn is_subscript(vm: &VirtualMachine) -> bool {
    at_instruction(vm, |code, at| {
        code.instructions.get(at).is_some_and(|unit| match unit.op {
            Instruction::BinaryOp { .. } => u8::from(unit.arg) == u8::from(BinaryOperator::Subscr),
            Instruction::BinaryOpSubscrListInt
            | Instruction::BinaryOpSubscrTupleInt
            | Instruction::BinaryOpSubscrStrInt
            | Instruction::BinaryOpSubscrGetitem => true,
            _ => false,
        })
    })
}

/// Whether a signal may raise an exception at this moment. The interpreter adds the argument of the
/// interrupted instruction to that of the first instruction of the exception's handler, which makes a
/// generator's handler fail.
pub(crate) fn is_safe_for_signal(vm: &VirtualMachine) -> bool {
    at_instruction_of(
        vm,
        |_| true,
        |code, at| {
            let argument = |at: usize| code.instructions.get(at).map_or(0, |unit| u8::from(unit.arg));
            let is_extended = at.checked_sub(1).and_then(|before| code.instructions.get(before));
            if argument(at) == 0
                && !is_extended.is_some_and(|unit| matches!(unit.op, Instruction::ExtendedArg))
            {
                return true;
            }
            let handler =
                u32::try_from(at).ok().and_then(|at| find_exception_handler(&code.exceptiontable, at));
            let first = handler.and_then(|handler| usize::try_from(handler.target).ok());
            first.is_none_or(|first| {
                code.instructions.get(first).is_some_and(|unit| matches!(unit.op, Instruction::PushExcInfo))
            })
        },
    )
}

/// Looks at the instruction that runs in the innermost call of the program's own code.
fn at_instruction(vm: &VirtualMachine, look: impl FnOnce(&PyCode, usize) -> bool) -> bool {
    at_instruction_of(vm, is_own, look)
}

/// Looks at the instruction that runs in the innermost call of code whose file is accepted.
fn at_instruction_of(
    vm: &VirtualMachine,
    is_wanted: impl Fn(&str) -> bool,
    look: impl FnOnce(&PyCode, usize) -> bool,
) -> bool {
    let frames = vm.frames.borrow();
    for frame in frames.iter().rev() {
        #[expect(unsafe_code, reason = "the interpreter hands out its stack of frames as pointers")]
        // SAFETY: a frame stays alive while it is on the interpreter's stack, which is borrowed here.
        let frame = unsafe { frame.as_ref() };
        if is_wanted(frame.code.source_path().as_str()) {
            return look(&frame.code, usize::try_from(frame.lasti()).unwrap_or(0).saturating_sub(1));
        }
    }
    false
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
        // `lasti` is the next instruction; the instruction before it is running.
        let instruction = usize::try_from(frame.lasti()).unwrap_or(0).saturating_sub(1);
        let location = frame.code.locations.get(instruction);
        return location.map_or(0, |(start, _end)| u32::try_from(start.line.get()).unwrap_or(u32::MAX));
    }
    0
}
