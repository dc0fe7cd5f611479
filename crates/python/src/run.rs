//! A program from its source to the end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use blockyard_record::{Bytes, Recording, Snapshot, Stats};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_torch::memory::{LogEntry, Origin, SimulatedGpu};
use blockyard_torch::{Estimate, GpuProfile, Session, SessionSettings};
use rustpython_vm::builtins::PyBaseExceptionRef;
use rustpython_vm::compiler::Mode;
use rustpython_vm::scope::Scope;
use rustpython_vm::signal::{UserSignal, UserSignalReceiver, UserSignalSender};
use rustpython_vm::vm::thread::with_current_vm;
use rustpython_vm::{AsObject, Interpreter, PyResult, Settings as VmSettings, TryFromObject, VirtualMachine};

use crate::host::{self, Host, Output, ProgramNote, RunLimits};
use crate::referrers::{self, Referrers, ReferrersRequest};
use crate::{
    brackets, collector, deallocation, integers, kept_graphs, modules, position, traceback, unknown,
};

/// The text of a program, with its name and its arguments.
#[derive(Clone, Debug)]
pub struct ProgramSource {
    /// The name that tracebacks show.
    pub file: String,
    /// The text of the program.
    pub source: String,
    /// The arguments after the file's name in `sys.argv`.
    pub arguments: Vec<String>,
}

/// The GPUs, the settings and the limits of a run.
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// The GPU; all devices are of this kind.
    pub gpu: GpuProfile,
    /// How many devices the program sees.
    pub devices: u8,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub config: AllocatorConfig,
    /// The folder of the program's own modules, files that end in `.py`; `None` where the program has no
    /// modules.
    pub folder: Option<PathBuf>,
    /// The non-PyTorch memory of each GPU: bytes that the program cannot have.
    pub non_pytorch: Bytes,
    /// Whether recordings are made.
    pub is_recorded: bool,
    /// How many operators a program may call before it is stopped.
    pub max_operators: u64,
    /// How many allocations and frees of GPU memory a program may ask for before it is stopped.
    pub max_requests: u64,
    /// How long a program may run before it is stopped; counts only with a clock and a second thread that
    /// reads the clock.
    pub time_limit: Option<Duration>,
    /// How much of the host's memory a program may use before it is stopped; counts only with a second thread
    /// that reads the memory.
    pub process_memory: Option<HostMemoryLimit>,
}

/// A limit of the host's memory.
#[derive(Clone, Copy, Debug)]
pub struct HostMemoryLimit {
    /// The bytes that the process uses now.
    pub used: fn() -> u64,
    /// The most bytes that the process may use.
    pub most: Bytes,
}

impl Default for ProgramSettings {
    fn default() -> Self {
        Self {
            gpu: GpuProfile::H200,
            devices: 1,
            config: AllocatorConfig::of(Release::OF_RECORDED_OPERATORS),
            non_pytorch: Bytes::ZERO,
            folder: None,
            is_recorded: false,
            max_operators: 5_000_000,
            max_requests: 10_000_000,
            time_limit: None,
            process_memory: None,
        }
    }
}

/// The allocations and the memory of a program on one GPU.
#[derive(Clone, Debug)]
pub struct DeviceRun {
    /// `PYTORCH_CUDA_ALLOC_CONF` as the program left it.
    pub conf: String,
    /// The statistics at the end.
    pub stats: Stats,
    /// The segments at the end.
    pub snapshot: Snapshot,
    /// The origin of each allocation, by the allocation's number.
    pub origins: Vec<Origin>,
    /// The allocations and frees in order, as the program asked for them.
    pub requests: Vec<LogEntry>,
    /// The line of the program at each step of the recording.
    pub step_lines: Vec<u32>,
    /// The recording; `None` if recordings are not made, or if the run was too long to record.
    pub recording: Option<Recording>,
}

/// How a program ended.
#[derive(Clone, Debug)]
pub struct ProgramOutcome {
    /// The exit status: 0, the argument of `sys.exit`, or 1 after an exception.
    pub status: i32,
    /// The traceback of an exception that the program did not catch.
    pub traceback: Option<String>,
    /// Why the program ran out of memory, where one of its lists is the cause.
    pub cause: Option<ProgramNote>,
    /// Remarks about the program, in order.
    pub notes: Vec<ProgramNote>,
    /// Operators whose results are unverified estimates.
    pub estimates: Vec<Estimate>,
    /// The signatures of the backward functions that took part in a second derivative.
    pub second_derivatives: Vec<String>,
    /// The program's work on each device.
    pub devices: Vec<DeviceRun>,
}

/// Runs a program on this thread to its end.
///
/// The thread's stack has to hold a thousand nested calls of the interpreter, as the thread of
/// [`run_on_thread`] does.
#[must_use]
pub fn run(program: &ProgramSource, settings: &ProgramSettings, output: Box<dyn Output>) -> ProgramOutcome {
    run_with(program, settings, output, None)
}

/// Runs a program, prints nothing, and reports why memory of the first GPU is alive once the recording has
/// `step` steps. Every run of a program is the same, so the step is the step of an earlier run. The program
/// continues after the report; a caller that needs no more ends the program.
pub fn run_to_step(
    program: &ProgramSource,
    settings: &ProgramSettings,
    step: usize,
    report: impl FnOnce(Referrers) + 'static,
) -> ProgramOutcome {
    // Only a recording has steps.
    let settings = ProgramSettings { is_recorded: true, ..settings.clone() };
    run_with(program, &settings, Box::new(|_: &str| {}), Some((step, Box::new(report))))
}

fn run_with(
    program: &ProgramSource,
    settings: &ProgramSettings,
    output: Box<dyn Output>,
    request: Option<ReferrersRequest>,
) -> ProgramOutcome {
    let session = Rc::new(Session::new(SessionSettings {
        profile: settings.gpu.clone(),
        devices: settings.devices,
        config: settings.config.clone(),
        non_pytorch: settings.non_pytorch,
        is_recorded: settings.is_recorded,
    }));
    let session_before = blockyard_torch::install(Rc::clone(&session));
    for device in devices(&session) {
        device.start_log();
    }
    let host = Host {
        output,
        file: program.file.clone(),
        folder: settings.folder.clone(),
        modules: BTreeMap::new(),
        notes: Vec::new(),
        clock: 0.0,
        operators: 0,
        limits: RunLimits { max_operators: settings.max_operators, max_requests: settings.max_requests },
    };
    let host_before = host::install(Some(host));
    if let Some(request) = request {
        referrers::request_at_step(request);
    }
    let ProgramEnd { status, traceback, cause, devices } = interpret(program, settings, &session);
    let host = host::install(host_before);
    let estimates = session.estimates();
    let second_derivatives = blockyard_torch::autograd::second_derivatives();
    match session_before {
        Some(before) => drop(blockyard_torch::install(before)),
        None => drop(blockyard_torch::session::uninstall()),
    }
    ProgramOutcome {
        status,
        traceback,
        cause,
        notes: host.map(|host| host.notes).unwrap_or_default(),
        estimates,
        second_derivatives,
        devices,
    }
}

fn devices(session: &Session) -> impl Iterator<Item = &Rc<SimulatedGpu>> {
    (0..session.device_count()).filter_map(|index| session.device(index).ok())
}

fn finish(device: &SimulatedGpu, file: &str) -> DeviceRun {
    DeviceRun {
        conf: device.config().map(|config| config.text().to_owned()).unwrap_or_default(),
        stats: device.stats(),
        snapshot: device.snapshot(),
        origins: device.origins(),
        requests: device.take_log(),
        step_lines: device.step_lines(),
        // A recorder that was never asked for gives none; one that fails has nothing to give.
        recording: device.finish(file).ok().flatten(),
    }
}

/// The results of the interpreter at a program's end.
struct ProgramEnd {
    status: i32,
    traceback: Option<String>,
    cause: Option<ProgramNote>,
    devices: Vec<DeviceRun>,
}

fn interpret(program: &ProgramSource, settings: &ProgramSettings, session: &Rc<Session>) -> ProgramEnd {
    let (stop, stopped) = rustpython_vm::signal::user_signal_channel();
    let interpreter = interpreter(stopped);
    let _watch = LimitGuard::start(settings, stop);
    interpreter.enter(|vm| {
        session.set_line_source(Some(Rc::new(|| with_current_vm(position::current_line))));
        let mut scope = None;
        let result = execute(vm, program, &mut scope);
        let globals = scope.as_ref().map(|scope| &scope.globals);
        let exception = result.as_ref().err();
        let cause =
            exception.and_then(|exception| kept_graphs::cause(vm, exception, globals, &program.source));
        // Blocks that the program still holds get their names in the recording.
        if let Some(first) = session.device(0).ok().filter(|device| device.is_recorded()) {
            first.name_allocations(referrers::names_at_end(vm, exception, globals));
        }
        let (status, traceback) = result
            .map_or_else(|exception| describe_exception(vm, &exception, &program.source), |()| (0, None));
        referrers::at_end(vm, globals);
        session.set_line_source(None);
        // The recording ends here, so that memory which the program still holds at its end is allocated at
        // the recording's end.
        let devices = devices(session).map(|device| finish(device, &program.file)).collect();
        drop(scope);
        deallocation::clear();
        modules::torch::forget();
        ProgramEnd { status, traceback, cause, devices }
    })
}

/// Runs a program on a new thread, whose stack is large enough, and waits for the program's end.
///
/// # Errors
///
/// The system gives no thread, or the interpreter fails. [`std::io::ErrorKind::TimedOut`] if the program runs
/// on after its time limit, because one call of the interpreter's own code does not end: the thread then runs
/// until the process ends.
#[cfg(not(target_arch = "wasm32"))]
pub fn run_on_thread(
    program: ProgramSource,
    settings: ProgramSettings,
    output: impl Output + Send + 'static,
) -> Result<ProgramOutcome, std::io::Error> {
    let failed = || std::io::Error::other("the interpreter failed");
    let limit = settings.time_limit;
    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("python".to_owned()).stack_size(STACK_BYTES);
    let thread = thread.spawn(move || {
        // The receiver does not exist any more if the caller gave the program up.
        let _given_up = done.send(run(&program, &settings, Box::new(output)));
    })?;
    let finished = match limit {
        None => wait.recv().map_err(|_panicked| failed())?,
        Some(limit) => wait.recv_timeout(limit.saturating_add(STOP_GRACE)).map_err(|error| match error {
            RecvTimeoutError::Disconnected => failed(),
            RecvTimeoutError::Timeout => std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                format!(
                    "the run ended without the program's end {} s after the limit of {} s: one call of the program does not end",
                    STOP_GRACE.as_secs(),
                    limit.as_secs()
                ),
            ),
        })?,
    };
    thread.join().map_err(|_panicked| failed())?;
    Ok(finished)
}

/// How long a program that has to stop may continue.
#[cfg(not(target_arch = "wasm32"))]
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Bytes of the stack of a program's thread; pages that no call reaches cost nothing.
#[cfg(not(target_arch = "wasm32"))]
const STACK_BYTES: usize = 1 << 30;

/// How often the limits are checked.
const LIMIT_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// How long after a signal the next one is sent.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(10);

/// Stops a program when its time is over or its memory is used up.
struct LimitGuard {
    _done: std::sync::mpsc::Sender<()>,
}

impl LimitGuard {
    /// `None` without a limit or without a second thread.
    fn start(settings: &ProgramSettings, stop: UserSignalSender) -> Option<Self> {
        let (time, memory) = (settings.time_limit, settings.process_memory);
        if time.is_none() && memory.is_none() {
            return None;
        }
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let watch = move || {
            let (mut left, mut look) = (time, LIMIT_CHECK_INTERVAL);
            // The channel is closed when the program has ended. The signal is sent again until then: the
            // whole process has one flag for signals, and another interpreter may have cleared it.
            while wait.recv_timeout(look) == Err(RecvTimeoutError::Timeout) {
                left = left.map(|left| left.saturating_sub(look));
                let Some(reason) = reason_to_stop(time.filter(|_| left == Some(Duration::ZERO)), memory)
                else {
                    continue;
                };
                let stopped: UserSignal = Box::new(move |vm| {
                    if position::is_safe_for_signal(vm) {
                        Err(host::stop_exception(vm, &reason))
                    } else {
                        Ok(())
                    }
                });
                if stop.send(stopped).is_err() {
                    return;
                }
                look = SIGNAL_INTERVAL;
            }
        };
        let _thread = std::thread::Builder::new().name("limits".to_owned()).spawn(watch);
        Some(Self { _done: done })
    }
}

/// Why a program has to stop: `time`, the limit that has passed, or the limit of its memory. `None` if the
/// program may continue.
fn reason_to_stop(time: Option<Duration>, memory: Option<HostMemoryLimit>) -> Option<String> {
    if let Some(limit) = time {
        return Some(format!("after {} s, as long as one run may take", limit.as_secs()));
    }
    let memory = memory.filter(|memory| (memory.used)() > memory.most.get())?;
    Some(format!("because its own data takes more than {} of this computer's memory", memory.most))
}

fn interpreter(stopped: UserSignalReceiver) -> Interpreter {
    let mut settings = VmSettings::default();
    settings.hash_seed = Some(0);
    let builder = Interpreter::builder(settings);
    let mut definitions = vec![
        modules::collector::module_def(&builder.ctx),
        modules::host::module_def(&builder.ctx),
        modules::time::module_def(&builder.ctx),
        modules::random::module_def(&builder.ctx),
        modules::math::module_def(&builder.ctx),
    ];
    definitions.extend(modules::torch::module_defs(&builder.ctx));
    builder
        .add_native_modules(&definitions)
        .add_frozen_modules(rustpython_vm::frozen::FrozenLib::from_ref(include_bytes!(concat!(
            env!("OUT_DIR"),
            "/library"
        ))))
        .init_hook(|vm| vm.set_user_signal_channel(stopped))
        .build()
}

/// How deep Python calls may nest. A call takes the interpreter some kilobytes of the thread's stack,
/// hundreds in a build without optimization; a browser's stack is small.
const RECURSION_LIMIT: usize = if cfg!(target_arch = "wasm32") { 400 } else { 1000 };

fn execute(vm: &VirtualMachine, program: &ProgramSource, kept: &mut Option<Scope>) -> PyResult<()> {
    vm.recursion_limit.set(RECURSION_LIMIT);
    deallocation::install(vm);
    unknown::install(vm);
    integers::install(vm);
    collector::take_over();
    vm.import("_start", 0)?;
    if program.source.contains("import torch") || program.source.contains("from torch") {
        // The program imports the package anyway, and the garbage collector never looks at objects that are
        // made before the program begins.
        vm.import("torch", 0)?;
    }
    collector::begin();
    let arguments = [&program.file].into_iter().chain(&program.arguments);
    let arguments = arguments.map(|argument| vm.ctx.new_str(argument.as_str()).into()).collect();
    vm.sys_module.set_attr("argv", vm.ctx.new_list(arguments), vm)?;
    let scope = kept.insert(vm.new_scope_with_main()?).clone();
    scope.globals.set_item("__file__", vm.ctx.new_str(program.file.as_str()).into(), vm)?;
    let code = vm
        .compile(&program.source, Mode::Exec, program.file.clone())
        .map_err(|error| vm.new_syntax_error(&error, Some(&program.source)))
        .map_err(|error| brackets::name_unclosed_bracket(vm, error, &program.source, &program.file))?;
    vm.run_code_obj(code, scope).map(drop)
}

/// The exit status after an exception, and its traceback unless it was a plain exit.
fn describe_exception(
    vm: &VirtualMachine,
    exception: &PyBaseExceptionRef,
    source: &str,
) -> (i32, Option<String>) {
    if !exception.fast_isinstance(vm.ctx.exceptions.system_exit) {
        return (1, Some(traceback::format(vm, exception, source)));
    }
    let Some(code) = exception.get_arg(0).filter(|code| !vm.is_none(code)) else { return (0, None) };
    match i32::try_from_object(vm, code.clone()) {
        Ok(status) => (status, None),
        Err(_not_a_number) => (1, code.str(vm).ok().map(|text| format!("{}\n", text.to_string_lossy()))),
    }
}
