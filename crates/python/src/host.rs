//! What native modules reach outside of the interpreter: where prints go, and how long a program may run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustpython_vm::{PyResult, VirtualMachine};

/// Takes what a program prints, piece by piece.
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

/// A remark of ours about a line of the program, for the reader of its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramNote {
    /// The line, counted from 1; 0 where none ran.
    pub line: u32,
    /// The remark.
    pub text: String,
}

pub(crate) struct Host {
    pub(crate) output: Box<dyn Output>,
    /// The program's file, as tracebacks show it.
    pub(crate) file: String,
    /// Where modules of the program are looked for.
    pub(crate) folder: Option<PathBuf>,
    /// The texts of the program's own modules that it imported, by the file that tracebacks show.
    pub(crate) modules: BTreeMap<String, String>,
    pub(crate) notes: Vec<ProgramNote>,
    /// Seconds of the program's clock: what it slept, and a little for each operator.
    pub(crate) clock: f64,
    /// Operators that the program may still call.
    pub(crate) operators_left: u64,
}

thread_local! {
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
}

/// Runs `action` with the host of the program that runs on this thread.
pub(crate) fn with<R>(action: impl FnOnce(&mut Host) -> R) -> Option<R> {
    HOST.with(|host| host.try_borrow_mut().ok()?.as_mut().map(action))
}

/// Installs a host; returns the one before.
pub(crate) fn install(host: Option<Host>) -> Option<Host> {
    HOST.with(|current| current.replace(host))
}

/// Reads a module that lies beside the program; gives its file as tracebacks show it, and its text.
pub(crate) fn read_module(path: &str) -> Option<(String, String)> {
    let file = folder()?.join(path);
    let text = std::fs::read_to_string(&file).ok()?;
    let shown = file.display().to_string();
    with(|host| host.modules.insert(shown.clone(), text.clone()));
    Some((shown, text))
}

/// Whether a folder of this name lies beside the program.
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

/// Counts a call of an operator; the program ends with an error when it has called as many as it may.
pub(crate) fn count_operator(vm: &VirtualMachine) -> PyResult<()> {
    let is_left = with(|host| {
        host.operators_left = host.operators_left.saturating_sub(1);
        host.clock += 1e-5;
        host.operators_left > 0
    });
    crate::collector::maybe_collect(vm);
    if is_left == Some(false) {
        return Err(vm.new_exception_msg(
            vm.ctx.exceptions.system_exit.to_owned(),
            "blockyard: the program was stopped, since it called as many operators as one run may (see --max-operators)".into(),
        ));
    }
    Ok(())
}
