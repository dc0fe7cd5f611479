//! `blockyard watch`: a running program, step by step, with the step at which it will run out of memory.

mod failure;
mod forecasts;
mod live;
mod processes;
mod program;
mod status;
mod stop;
mod target;
mod text;
mod trend;

use std::io::{ErrorKind, Read as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use blockyard_dry_run::find_library;
use blockyard_lab::RUNNING;
use blockyard_watch::{
    ALL_LINES_VARIABLE, CHECK_VARIABLE, Decoder, LIBRARY, environment, write_attach, write_hook,
};
use clap::Args;

use self::live::LivePrograms;
use self::processes::Processes;
use self::program::{ProgramReader, stem};
use self::stop::{Stop, StopSignal};
use self::target::Target;
use crate::{output, page};

/// Between two looks whether the program has ended.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a process that goes on after the program's end is still read.
const MAX_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command")]
pub(crate) struct WatchOptions {
    /// The program with its arguments, as you start it: `python train.py`, `torchrun ...`, `blockyard dry-run
    /// train.py`.
    #[arg(
        trailing_var_arg = true,
        required_unless_present_any = ["pid", "listen"],
        value_name = "PROGRAM"
    )]
    command: Vec<String>,
    /// Watch a program that runs already, by its process id. Under Python before 3.14 this needs gdb and the right
    /// to debug the program. The memory that it has already is known, the lines that made it are not.
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,
    /// For the Python package: files that watch a program are written into this folder. This command ends with
    /// its standard input.
    #[arg(long, value_name = "FOLDER", hide = true, conflicts_with_all = ["command", "pid"])]
    listen: Option<PathBuf>,
    /// The file for the last steps, a snapshot of PyTorch that all questions read. It is written when the program
    /// ends, runs out of memory or is killed, and after a failed request there is a report beside it. Each further
    /// process has a file with its rank or number.
    #[arg(long, value_name = "FILE", default_value = "watch.pickle")]
    out: PathBuf,
    /// Take PyTorch's snapshot after each step and compare it with the state that the events lead to. The
    /// program becomes slower.
    #[arg(long)]
    check: bool,
    /// Find the line of each request, also where that takes more than half a percent of the program's time. Else
    /// requests below 1 MiB have none from then on.
    #[arg(long)]
    all_lines: bool,
    /// Send the program a signal N steps before the step that the forecast says fails, so that it can save a
    /// checkpoint. Each watched process that handles the signal gets it, once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    stop_before_failure: Option<u64>,
    /// Which signal that is.
    #[arg(long, value_enum, default_value = "usr1", requires = "stop_before_failure")]
    signal: StopSignal,
    /// Show the program in the page while it runs, and its recording at the end.
    #[arg(long = "page")]
    opens_page: bool,
    /// Only print the page's address.
    #[arg(long, requires = "opens_page")]
    no_browser: bool,
    /// The port of the page on 127.0.0.1; without it, any that is free.
    #[arg(long, requires = "opens_page")]
    port: Option<u16>,
}

pub(crate) fn watch(options: &WatchOptions) -> anyhow::Result<ExitCode> {
    let Some(library) = find_library("BLOCKYARD_WATCH", LIBRARY) else {
        bail!("{LIBRARY} is not beside this command: `cargo build -p blockyard-watch` makes it");
    };
    let live = if options.opens_page { Some(serve(options)?) } else { None };
    let temporary =
        tempfile::Builder::new().prefix("blockyard-watch-").tempdir().context("a folder for the socket")?;
    let folder = options.listen.as_deref().unwrap_or(temporary.path());
    write_hook(folder).context("the files that load the library")?;
    let socket = folder.join("socket");
    let listener = UnixListener::bind(&socket).context("the socket")?;
    listener.set_nonblocking(true).context("the socket")?;
    // A terminal sends the signal to a program that was started here too, and this command still writes the
    // recording.
    let is_interrupted = Arc::new(AtomicBool::new(false));
    let interrupted = is_interrupted.clone();
    ctrlc::set_handler(move || interrupted.store(true, Ordering::Relaxed))
        .context("cannot pass Ctrl-C on to the program")?;
    let set = [(options.check, CHECK_VARIABLE), (options.all_lines, ALL_LINES_VARIABLE)];
    let set = set.into_iter().filter_map(|(is_set, name)| is_set.then_some(name));
    let variables = environment(folder, &socket, &library, set);
    write_attach(folder, &variables).context("the file that attaches")?;
    let mut target = match options.pid {
        Some(pid) => Target::attach(pid, folder, is_interrupted)?,
        None if options.listen.is_some() => Target::parent(),
        None => Target::start(&options.command, variables)?,
    };
    let has_ended = Arc::new(AtomicBool::new(false));
    let stop = options.stop_before_failure.map(|steps| Stop::new(steps, options.signal));
    let processes = Arc::new(Processes::new(folder, stop, live));
    let mut readers: Vec<JoinHandle<()>> = Vec::new();
    let status = loop {
        accept(&listener, &options.out, &processes, &has_ended, &mut readers);
        if let Some(status) = target.ended()? {
            break status;
        }
        std::thread::sleep(PAUSE);
    };
    // A process that connected and ended at once.
    accept(&listener, &options.out, &processes, &has_ended, &mut readers);
    has_ended.store(true, Ordering::Relaxed);
    if readers.is_empty() {
        output::warn("nothing was watched: no process initialized CUDA in PyTorch")?;
    }
    for reader in readers {
        // A fault of a reader was printed by its thread.
        let _ = reader.join();
    }
    if let Some(live) = &processes.live {
        live.wait_for_page();
    }
    Ok(status)
}

/// Serves the page until this command ends, and shows it in the browser.
fn serve(options: &WatchOptions) -> anyhow::Result<Arc<LivePrograms>> {
    let live = Arc::new(LivePrograms::default());
    let beside = live.clone();
    let name = format!("{}{RUNNING}", stem(&options.out));
    let (server, url) = page::serve(None, options.port.unwrap_or(0), &name, move |asked| beside.find(asked))?;
    eprintln!("[watch] the program is shown at {url}");
    if !options.no_browser {
        page::show(&url)?;
    }
    // A page that reads slowly must not keep the command from ending, so nothing waits for this thread.
    std::thread::spawn(move || server.wait());
    Ok(live)
}

/// Starts a thread for each process that has connected.
fn accept(
    listener: &UnixListener,
    out: &Path,
    processes: &Arc<Processes>,
    has_ended: &Arc<AtomicBool>,
    readers: &mut Vec<JoinHandle<()>>,
) {
    while let Ok((stream, _)) = listener.accept() {
        let mut program = ProgramReader::new(readers.len(), out, processes);
        let has_ended = has_ended.clone();
        readers.push(std::thread::spawn(move || {
            if let Err(error) = read(&stream, &mut program, &has_ended) {
                eprintln!("blockyard watch: {error:#}");
            }
            program.finish();
        }));
    }
}

/// Reads what a process sends, until it ends. The reader never waits for anything else, so that the process can
/// send at any time.
fn read(mut stream: &UnixStream, program: &mut ProgramReader, has_ended: &AtomicBool) -> anyhow::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut decoder = Decoder::default();
    let mut bytes = vec![0; 1 << 18];
    let mut over: Option<Instant> = None;
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => decoder.add(bytes.get(..count).unwrap_or_default()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        while let Some(frame) = decoder.next()? {
            program.apply(frame).map_err(anyhow::Error::msg)?;
        }
        program.write_with_others();
        program.answer();
        if has_ended.load(Ordering::Relaxed) && over.get_or_insert_with(Instant::now).elapsed() > MAX_WAIT {
            return Ok(());
        }
    }
}
