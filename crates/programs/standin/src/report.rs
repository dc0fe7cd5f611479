//! The report about a run: functions that this library lacks and values that were assumed, one JSON object a
//! line. The names of calls go to the file that `STANDIN_TRACE` names, one a line.
#![expect(unsafe_code, reason = "the generated entry points call a function of C")]

use std::collections::BTreeSet;
use std::env;
use std::ffi::{CStr, c_char, c_long};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use blockyard_hooks::variables;
use serde_json::{Value, json};

use crate::python::{self, PythonLine};

/// Lists a call, where `STANDIN_TRACE` names a file.
pub(crate) fn report_call(name: &str) {
    static TRACE: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    if let Some(file) = TRACE.get_or_init(|| open(variables::TRACE).map(Mutex::new)) {
        // A full disk ends the trace and not the program.
        let _ = writeln!(file.lock().unwrap_or_else(PoisonError::into_inner), "{name}");
    }
}

fn open(variable: &str) -> Option<File> {
    let path = PathBuf::from(env::var_os(variable).filter(|path| !path.is_empty())?);
    OpenOptions::new().create(true).append(true).open(path).ok()
}

/// Writes a line of the report. Each line is whole even if the process ends right after.
fn write(line: &Value) {
    static REPORT: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    match REPORT.get_or_init(|| open(variables::REPORT).map(Mutex::new)) {
        Some(file) => {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let text = format!("{line}\n");
            if file.write_all(text.as_bytes()).is_err() {
                eprintln!("blockyard: the report cannot be written: {line}");
            }
        }
        // Without a file the report goes to standard error, so that no assumption is silent.
        None => eprintln!("blockyard: {line}"),
    }
}

/// Whether the line with this key was not reported before.
fn is_new(key: String) -> bool {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(key)
}

/// How often a value was not sure, reported or not.
static UNSURE: AtomicU64 = AtomicU64::new(0);

/// How often the host read bytes that are not sure, or a number was assumed, on any thread and at any line.
#[unsafe(no_mangle)]
extern "C" fn blockyard_unsure() -> u64 {
    UNSURE.load(Ordering::Relaxed)
}

/// Reports a call of a function that this library lacks: later numbers are an estimate. Each function is
/// reported once.
pub(crate) fn report_unknown_function(name: &str) {
    UNSURE.fetch_add(1, Ordering::Relaxed);
    if is_new(format!("function {name}")) {
        let place = python::place();
        write(&json!({"kind": "function", "name": name, "file": place.file, "line": place.line}));
    }
}

/// Reports that the host read bytes that are not sure, with the value that it got. Reported once for each
/// line of a program and each reason.
pub(crate) fn report_read(place: &PythonLine, bytes: u64, text: &str) {
    UNSURE.fetch_add(1, Ordering::Relaxed);
    // A number that changes from read to read is not a new reason.
    let reason = text.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    if is_new(format!("read {} {} {reason}", place.file, place.line)) {
        write(&json!({"kind": "read", "bytes": bytes, "text": text, "file": place.file, "line": place.line}));
    }
}

/// Reports a number that is not recorded and was assumed: later numbers are an estimate. Each text is
/// reported once.
pub(crate) fn report_estimate(text: &str) {
    UNSURE.fetch_add(1, Ordering::Relaxed);
    if is_new(format!("estimate {text}")) {
        let place = python::place();
        write(&json!({"kind": "estimate", "text": text, "file": place.file, "line": place.line}));
    }
}

/// Whether this process is not the program's own, which `STANDIN_PROCESS` names: the program started it.
fn is_child() -> bool {
    static OWN: OnceLock<Option<u32>> = OnceLock::new();
    let own = OWN.get_or_init(|| env::var(variables::PROCESS).ok().and_then(|number| number.parse().ok()));
    own.is_some_and(|own| own != std::process::id())
}

/// Reports the bytes of a device that a process which the program started has taken, a new peak.
pub(crate) fn report_use(device: i32, bytes: u64) {
    if is_child() {
        write(&json!({"kind": "child", "process": std::process::id(), "device": device, "bytes": bytes}));
    }
}

/// Reports that the driver or a library took memory of a device beside PyTorch's segments: the ranks of the
/// communicator where the holder has one, and how often the holder has taken memory so far.
pub(crate) fn report_taken(device: i32, what: &str, ranks: u64, count: u64) {
    // The report has a separate row for the bytes of a process that the program started.
    if !is_child() {
        write(&json!({"kind": "taken", "device": device, "what": what, "ranks": ranks, "count": count}));
    }
}

/// Called by the generated entry points, with the function's name.
///
/// # Safety
///
/// `name` must be a text of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn blockyard_standin_unknown(name: *const c_char) -> c_long {
    // SAFETY: as the caller says.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    report_call(&name);
    crate::values::note_computation();
    report_unknown_function(&name);
    0
}
