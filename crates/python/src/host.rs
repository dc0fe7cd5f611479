//! The parts of the host that native modules use: the output of prints, and the limits of a run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blockyard_record::grouped;
use rustpython_vm::builtins::PyBaseExceptionRef;
use rustpython_vm::{PyResult, VirtualMachine};

/// Takes the text that a program prints, piece by piece.
pub trait Output {
    /// A piece of text, in the order of printing.
    fn print(&mut self, text: &str);
}

impl Output for String {
    fn print(&mut self, text: &str) {
        self.push_str(text);
    }
}

impl<F: FnMut(&str)> Output for F {
    fn print(&mut self, text: &str) {
        self(text);
    }
}

/// A remark about a line of the program, for the reader of its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramNote {
    /// The line, counted from 1; 0 if no line ran.
    pub line: u32,
    /// The remark, in a sentence.
    pub text: String,
}

/// The host of one run: where output goes, and what is counted.
pub(crate) struct Host {
    pub(crate) output: Box<dyn Output>,
    /// The program's file, as tracebacks show it.
    pub(crate) file: String,
    /// The folder in which modules of the program are searched; `None` where the program has no modules.
    pub(crate) folder: Option<PathBuf>,
    /// The texts of the program's own modules that it imported, by the file that tracebacks show.
    pub(crate) modules: BTreeMap<String, String>,
    pub(crate) notes: Vec<ProgramNote>,
    /// Seconds of the program's clock: the time that the program slept, and a little for each operator.
    pub(crate) clock: f64,
    /// How many operators the program has called.
    pub(crate) operators: u64,
    pub(crate) limits: RunLimits,
}

thread_local! {
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
}

/// Runs `action` with the host of the program that runs on this thread.
pub(crate) fn with<R>(action: impl FnOnce(&mut Host) -> R) -> Option<R> {
    HOST.with(|host| host.try_borrow_mut().ok()?.as_mut().map(action))
}

/// Installs a host for this thread; returns the host before.
pub(crate) fn install(host: Option<Host>) -> Option<Host> {
    HOST.with(|current| current.replace(host))
}

/// Reads a module beside the program; returns the module's file as tracebacks show it, and the text. `None`
/// if no such file exists.
pub(crate) fn read_module(path: &str) -> Option<(String, String)> {
    let file = folder()?.join(path);
    let text = std::fs::read_to_string(&file).ok()?;
    let shown = file.display().to_string();
    with(|host| host.modules.insert(shown.clone(), text.clone()));
    Some((shown, text))
}

/// Whether a folder of this name is beside the program.
pub(crate) fn is_folder(path: &str) -> bool {
    folder().is_some_and(|folder| folder.join(path).is_dir())
}

fn folder() -> Option<PathBuf> {
    with(|host| host.folder.as_deref().map(Path::to_owned))?
}

/// Notes a remark once for each line.
pub(crate) fn note(line: u32, text: impl Into<String>) {
    let note = ProgramNote { line, text: text.into() };
    with(|host| {
        if !host.notes.contains(&note) {
            host.notes.push(note);
        }
    });
}

/// The limits of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLimits {
    pub(crate) max_operators: u64,
    pub(crate) max_requests: u64,
}

/// Counts a call of an operator. An error, which ends the program, after the most operators, or after the
/// most allocations and frees.
pub(crate) fn count_operator(vm: &VirtualMachine) -> PyResult<()> {
    let over = with(|host| {
        host.operators += 1;
        host.clock += 1e-5;
        let RunLimits { max_operators, max_requests } = host.limits;
        if host.operators > max_operators {
            Some(format!("called {} operators", grouped(max_operators)))
        } else if blockyard_torch::session().request_count() >= max_requests {
            Some(format!("asked for {} allocations and frees of GPU memory", grouped(max_requests)))
        } else {
            None
        }
    });
    crate::collector::maybe_collect(vm);
    match over.flatten() {
        Some(what) => {
            let line = crate::position::current_line(vm);
            Err(stop_exception(vm, &format!("at line {line}: it {what}, as many as one run may")))
        }
        None => Ok(()),
    }
}

/// The exception that ends a program, with the reason in words.
pub(crate) fn stop_exception(vm: &VirtualMachine, reason: &str) -> PyBaseExceptionRef {
    let text = format!("blockyard: the program was stopped {reason}{LIMITS_HINT}");
    vm.new_exception_msg(vm.ctx.exceptions.system_exit.to_owned(), text.into())
}

/// The end of the text of a limit: where the limit can be raised.
const LIMITS_HINT: &str =
    if cfg!(target_arch = "wasm32") { "" } else { " (other limits: blockyard python --help)" };
