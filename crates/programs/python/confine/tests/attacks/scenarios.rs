//! What the tested process does: it confines itself, does what the scenario is about, and says that it goes on.

use std::fmt::Display;
use std::fs::{self, File};
use std::hint::{black_box, spin_loop};
use std::io::{self, Write};
use std::os::fd::{IntoRawFd, RawFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use blockyard_confine::{Confinement, confine};
use blockyard_record::Bytes;

use super::attempts::ATTEMPTS;
use super::ordinary::ORDINARY;

/// The variable that makes this program the tested process.
pub(crate) const SCENARIO: &str = "BLOCKYARD_CONFINE_SCENARIO";
/// The variable with the folder of the test.
pub(crate) const FOLDER: &str = "BLOCKYARD_CONFINE_FOLDER";

/// What a scenario knows of its surroundings.
pub(crate) struct Surroundings {
    pub(crate) inside: PathBuf,
    pub(crate) scratch: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) parent: i32,
    /// A file outside that was open before.
    pub(crate) open_before: RawFd,
}

pub(crate) fn run(scenario: &str) -> ExitCode {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let place = Surroundings {
        inside: folder.join("inside"),
        scratch: folder.join("scratch"),
        outside: folder.join("outside"),
        parent: rustix::process::getppid().unwrap().as_raw_pid(),
        open_before: File::open(folder.join("outside/secret")).unwrap().into_raw_fd(),
    };
    let mut confinement = Confinement {
        readable: vec![place.inside.clone()],
        writable: vec![place.scratch.clone()],
        kept_descriptors: Vec::new(),
        memory: Bytes::mib(256),
        processor_time: Duration::from_mins(1),
    };
    match scenario {
        "two-threads" => return with_two_threads(&confinement, &place),
        "missing-path" => confinement.readable.push(folder.join("missing")),
        "read-only" => confinement.writable.clear(),
        "time" | "stubborn" => confinement.processor_time = Duration::from_millis(300),
        "file" => confinement.memory = Bytes::mib(16),
        "small-threads" => confinement.memory = Bytes::gib(4),
        _ => {}
    }
    if let Err(error) = confine(&confinement) {
        println!("{error}");
    } else {
        act(scenario, &place);
    }
    println!("goes on");
    ExitCode::SUCCESS
}

fn act(scenario: &str, place: &Surroundings) {
    match scenario {
        "attempts" => ATTEMPTS.iter().for_each(|(name, _, attempt)| say(name, attempt(place))),
        "ordinary" => ORDINARY.iter().for_each(|(name, act)| say(name, act(place))),
        "read-only" => {
            say("make a file", File::create(place.scratch.join("file")));
            say("make a folder", fs::create_dir(place.scratch.join("folder")));
            say("remove a link", fs::remove_file(place.scratch.join("link")));
        }
        "memory" => println!("{}", fill_memory()),
        "threads" => println!("{}", start_threads(2 << 20)),
        "small-threads" => println!("{}", start_threads(16 << 10)),
        "time" => work_without_end(),
        "stubborn" => {
            ignore_signal();
            work_without_end();
        }
        "file" => {
            let mut file = File::create(place.scratch.join("large")).unwrap();
            let piece = vec![1; 1 << 20];
            (0..32).for_each(|_| file.write_all(&piece).unwrap());
        }
        "abort" => std::process::abort(),
        _ => panic!("no scenario {scenario}"),
    }
}

/// Says how an attempt ended, by the name that errors have in Linux.
fn say<T>(name: impl Display, result: io::Result<T>) {
    let answer = match result {
        Ok(_) => "done".to_owned(),
        Err(error) => match error.raw_os_error() {
            Some(libc::EPERM) => "EPERM".to_owned(),
            Some(libc::EACCES) => "EACCES".to_owned(),
            Some(libc::ENOSYS) => "ENOSYS".to_owned(),
            Some(libc::EBADF) => "EBADF".to_owned(),
            _ => error.to_string(),
        },
    };
    println!("{name}: {answer}");
}

/// Takes memory and writes to it until there is no more; gives all of it back. In MiB.
fn fill_memory() -> usize {
    let mut pieces: Vec<Vec<u8>> = Vec::with_capacity(1 << 12);
    loop {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(1 << 20).is_err() || pieces.len() == pieces.capacity() {
            return pieces.len();
        }
        piece.resize(1 << 20, 1);
        pieces.push(black_box(piece));
    }
}

/// Starts threads until the system refuses one; all of them wait and end.
fn start_threads(stack: usize) -> usize {
    let (release, wait) = mpsc::channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let mut threads = Vec::new();
    loop {
        let wait = wait.clone();
        let waiting = move || wait.lock().is_ok_and(|wait| wait.recv().is_err());
        match thread::Builder::new().stack_size(stack).spawn(waiting) {
            Ok(started) if threads.len() < 20_000 => threads.push(started),
            _ => break,
        }
    }
    let count = threads.len();
    drop(release);
    for thread in threads {
        let _ = thread.join();
    }
    count
}

fn work_without_end() -> ! {
    loop {
        spin_loop();
    }
}

#[expect(unsafe_code, reason = "the standard library has no function for signals")]
fn ignore_signal() {
    // SAFETY: no code runs when the signal arrives.
    let before = unsafe { libc::signal(libc::SIGXCPU, libc::SIG_IGN) };
    assert_ne!(before, libc::SIG_ERR);
}

/// Nothing is changed by the attempt: the file outside can be read as before.
fn with_two_threads(confinement: &Confinement, place: &Surroundings) -> ExitCode {
    let (release, wait) = mpsc::channel::<()>();
    let thread = thread::spawn(move || wait.recv());
    println!("{}", confine(confinement).unwrap_err());
    drop(release);
    thread.join().unwrap().unwrap_err();
    println!("{}", fs::read_to_string(place.outside.join("secret")).unwrap());
    println!("goes on");
    ExitCode::SUCCESS
}
