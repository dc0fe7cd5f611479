//! A program from its source to the end.

use std::collections::BTreeMap;

use rustpython_vm::builtins::PyBaseExceptionRef;
use rustpython_vm::compiler::Mode;
use rustpython_vm::{AsObject, Interpreter, PyResult, Settings as VmSettings, VirtualMachine};

use crate::host::{self, Host, Note, Output};
use crate::{modules, traceback};

/// What a program is given.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name that tracebacks show; it ends in `.py`.
    pub file: String,
    /// The text.
    pub source: String,
    /// What follows the file's name in `sys.argv`.
    pub arguments: Vec<String>,
}

/// How a program ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The exit status: 0, what `sys.exit` was given, or 1 after an exception.
    pub status: i32,
    /// The traceback of an exception that nobody caught.
    pub traceback: Option<String>,
    /// Our remarks, in order.
    pub notes: Vec<Note>,
}

/// Runs a program on this thread to its end.
#[must_use]
pub fn run(program: &Program, output: Box<dyn Output>) -> Finished {
    let interpreter = interpreter();
    let host = Host { output, notes: Vec::new(), clock: 0.0, environment: BTreeMap::new(), operators_left: 1_000_000 };
    let before = host::install(Some(host));
    let (status, text) = interpreter.enter(|vm| match execute(vm, program) {
        Ok(()) => (0, None),
        Err(exception) => failure(vm, &exception, &program.source),
    });
    modules::torch::forget();
    let host = host::install(before);
    Finished { status, traceback: text, notes: host.map(|host| host.notes).unwrap_or_default() }
}

fn interpreter() -> Interpreter {
    let mut settings = VmSettings::default();
    settings.hash_seed = Some(0);
    let builder = Interpreter::builder(settings);
    let mut definitions = vec![
        modules::host::module_def(&builder.ctx),
        modules::time::module_def(&builder.ctx),
        modules::random::module_def(&builder.ctx),
        modules::math::module_def(&builder.ctx),
    ];
    definitions.extend(modules::torch::module_defs(&builder.ctx));
    builder.add_native_modules(&definitions).add_frozen_modules(rustpython_vm::py_freeze!(dir = "../lib")).build()
}

fn execute(vm: &VirtualMachine, program: &Program) -> PyResult<()> {
    vm.import("_start", 0)?;
    let arguments = [&program.file].into_iter().chain(&program.arguments);
    let arguments = arguments.map(|argument| vm.ctx.new_str(argument.as_str()).into()).collect();
    vm.sys_module.set_attr("argv", vm.ctx.new_list(arguments), vm)?;
    let scope = vm.new_scope_with_main()?;
    scope.globals.set_item("__file__", vm.ctx.new_str(program.file.as_str()).into(), vm)?;
    let code = vm
        .compile(&program.source, Mode::Exec, program.file.clone())
        .map_err(|error| vm.new_syntax_error(&error, Some(&program.source)))?;
    vm.run_code_obj(code, scope).map(drop)
}

/// The exit status after an exception, and its traceback unless it was a plain exit.
fn failure(vm: &VirtualMachine, exception: &PyBaseExceptionRef, source: &str) -> (i32, Option<String>) {
    if !exception.fast_isinstance(vm.ctx.exceptions.system_exit) {
        return (1, Some(traceback::format(vm, exception, source)));
    }
    let Some(code) = exception.get_arg(0).filter(|code| !vm.is_none(code)) else { return (0, None) };
    match i32::try_from_object(vm, code.clone()) {
        Ok(status) => (status, None),
        Err(_not_a_number) => (1, code.str(vm).ok().map(|text| format!("{}\n", text.to_string_lossy()))),
    }
}

use rustpython_vm::TryFromObject as _;
