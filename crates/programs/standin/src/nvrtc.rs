//! NVRTC: a kernel's source is taken and no code is made, since no code runs.
#![expect(unsafe_code, reason = "functions are exported under NVRTC's names")]

use std::ffi::{c_char, c_int};

use crate::abi::{In, Out, put_text, text};
use crate::settings::settings;
use crate::state::state;

const SUCCESS: c_int = 0;
const INVALID_PROGRAM: c_int = 4;
const PROGRAM: &str = "NVRTC program";
/// Bytes of the code that a compiled program is said to have.
const CODE: usize = 16;

fn is_program(program: usize) -> bool {
    state().objects.get(program) == Some(&PROGRAM)
}

fn size(program: usize, to: Out<usize>, size: usize) -> c_int {
    if !is_program(program) {
        return INVALID_PROGRAM;
    }
    to.put(size);
    SUCCESS
}

fn code(program: usize, to: Out<u8>) -> c_int {
    if !is_program(program) {
        return INVALID_PROGRAM;
    }
    put_text(to, CODE, "");
    SUCCESS
}

entries! {
    fn nvrtcVersion(major: Out<c_int>, minor: Out<c_int>) -> c_int {
        major.put(settings().cuda / 1000);
        minor.put(settings().cuda % 1000 / 10);
        SUCCESS
    }

    fn nvrtcCreateProgram(to: Out<usize>, _source: usize, _name: usize, _count: c_int, _headers: usize, _names: usize) -> c_int {
        to.put(state().objects.add(PROGRAM));
        SUCCESS
    }

    fn nvrtcDestroyProgram(program: Out<usize>) -> c_int {
        let removed = program.get().and_then(|program| state().objects.remove(program));
        program.put(0);
        if removed == Some(PROGRAM) { SUCCESS } else { INVALID_PROGRAM }
    }

    fn nvrtcCompileProgram(program: usize, _count: c_int, _options: usize) -> c_int {
        if is_program(program) { SUCCESS } else { INVALID_PROGRAM }
    }

    fn nvrtcAddNameExpression(program: usize, _name: usize) -> c_int {
        if is_program(program) { SUCCESS } else { INVALID_PROGRAM }
    }

    fn nvrtcGetLoweredName(_program: usize, name: In<c_char>, to: Out<In<c_char>>) -> c_int {
        to.put(name);
        SUCCESS
    }

    fn nvrtcGetCUBINSize(program: usize, to: Out<usize>) -> c_int {
        size(program, to, CODE)
    }

    fn nvrtcGetPTXSize(program: usize, to: Out<usize>) -> c_int {
        size(program, to, CODE)
    }

    fn nvrtcGetProgramLogSize(program: usize, to: Out<usize>) -> c_int {
        size(program, to, 1)
    }

    fn nvrtcGetCUBIN(program: usize, to: Out<u8>) -> c_int {
        code(program, to)
    }

    fn nvrtcGetPTX(program: usize, to: Out<u8>) -> c_int {
        code(program, to)
    }

    fn nvrtcGetProgramLog(program: usize, to: Out<u8>) -> c_int {
        code(program, to)
    }

    fn nvrtcGetErrorString(_error: c_int) -> *const c_char {
        text(c"an error of NVRTC")
    }
}
