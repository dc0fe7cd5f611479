//! Takes from the process that calls [`confine`] all that a program of somebody else does not need.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use blockyard_confine::{Confinement, confine};
//! use blockyard_record::Bytes;
//!
//! # fn main() -> Result<(), blockyard_confine::ConfineError> {
//! confine(&Confinement {
//!     readable: vec!["/usr/lib/python3.12".into(), "/home/me/class/anna".into()],
//!     writable: Vec::new(),
//!     kept_descriptors: Vec::new(),
//!     memory: Bytes::gib(2),
//!     processor_time: Duration::from_secs(60),
//! })?;
//! // From here on, what runs in this process is confined, and so is every thread that it starts.
//! # Ok(())
//! # }
//! ```
//!
//! # What is taken
//!
//! | the program wants | what refuses it | the error |
//! | --- | --- | --- |
//! | to open a file or list a folder outside of `readable`, `writable` and a few of the system's | Landlock | `EACCES` |
//! | to write, create, rename or remove anything outside of `writable` | Landlock | `EACCES`; `EPERM` where `writable` is empty |
//! | permissions, owners, times, links, devices of files, and pipes and sockets with names | the list of system calls | `EPERM` |
//! | a socket of any family, also one end of a pair | the list | `EPERM` |
//! | a process: `fork`, `vfork`, `clone` without a thread, `execve` | the list | `EPERM` |
//! | to trace or read another process, or to send it a signal | the list, and Landlock from Linux 6.12 on | `EPERM` |
//! | mounts, namespaces, BPF, performance counters, `io_uring`, keys, `userfaultfd`, `memfd_create`, shared memory | the list | `EPERM` |
//! | a system call that Linux gets tomorrow | the list, which says what is allowed | `EPERM` |
//! | more memory than `memory` | `RLIMIT_DATA` | `ENOMEM`; in Python `MemoryError` |
//! | more time of the processor than `processor_time` | `RLIMIT_CPU` | the signal `SIGXCPU`, and `SIGKILL` a second later |
//! | descriptors that were open before | they are closed, but for the standard three and `kept_descriptors` | `EBADF` |
//! | what the user root may do beyond others | its capabilities are dropped, but for reading | `EPERM` |
//!
//! Nothing is killed for asking: a refused call returns its error, and the program goes on.
//!
//! # What is not taken
//!
//! - **What is in the memory of the process**, with its environment variables. The parent starts the process
//!   with an environment that holds no secret.
//! - **A forged outcome.** A program can write to any memory of its process, and so report that it passed.
//! - **Names, sizes and times of files.** `stat` and `readlink` answer for any path: Landlock has no rule for
//!   them. No content is read that way.
//! - **Time on the clock.** A program may sleep. The parent ends the process when its time is over; no program
//!   can leave the group of its parent or ignore `SIGKILL`.
//! - **What is printed.** Text may hold control characters of a terminal. The parent removes them before it
//!   shows the text.
//! - **The number of files in `writable`.** Each is as large as `memory` at most. A program can make files and
//!   folders there and nothing else: the parent, which has all its rights, finds no link and no pipe.
//! - **Threads without end, where the user is root.** Of other users a process may have [`MAX_THREADS`] more than
//!   the user has now; root has no such limit in Linux. Each thread that Python starts takes of `memory`.
//! - **A hole in the kernel.** A program runs on the machine's own kernel, of which it sees about 120 system calls
//!   of 360.
//!
//! # Decisions
//!
//! **From inside.** The process confines itself after it has imported what is trusted. This needs no container, no
//! namespace and no help of an administrator, and any user may do it.
//!
//! **One thread.** Landlock and the list hold for the thread that asks for them and for those that it starts. A
//! thread that ran before would stay free, and a program could write code into its memory. So a process
//! with threads is an error; the usual cause is numpy, whose library starts threads when it is imported
//! (`OPENBLAS_NUM_THREADS=1`).
//!
//! **Linux 6.2.** Its Landlock (version 3) is the first that keeps a program from cutting off a file. Newer ones
//! refuse connections and signals too, and are used where they are known; the list refuses both on each kernel.
//!
//! **`ENOSYS` for `clone3`.** The list cannot look into the structure that `clone3` gets. Told that there is no such
//! call, the C library starts its threads by `clone`, whose flags the list can see.
//!
//! **Shared memory without a file is refused**, because `RLIMIT_DATA` does not count it.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use blockyard_record::Bytes;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod other;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use linux as system;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
use other as system;

/// How many threads a confined process may start beside those that its user has when it is confined. The user
/// root has no such limit.
pub const MAX_THREADS: u64 = 4096;

/// What a process keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// The files and folders that may be read, with all that the folders hold: the program's folder, and the
    /// folders of Python. All must exist. A link inside of such a folder that leads out of it is refused when it is
    /// opened. A path that is a link itself allows what the link leads to, so a link that others handed in must not be
    /// given here.
    ///
    /// What the C library reads late may be read too: its libraries, the time zone, random bytes.
    pub readable: Vec<PathBuf>,
    /// The folders in which files and folders may be made, changed, removed and read. All must exist.
    pub writable: Vec<PathBuf>,
    /// The descriptors that stay open, beside the standard three. All others are closed, whatever owns them.
    pub kept_descriptors: Vec<i32>,
    /// What the process may take beside what it has when it is confined, and the size of a file that it writes.
    pub memory: Bytes,
    /// The time of the processor, in all threads together, from now on. A part of a second counts as a whole one.
    pub processor_time: Duration,
}

/// Why a process was not confined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// This system cannot confine programs, whatever they are.
    #[error(
        "programs of others are confined on Linux alone, on x86-64 and ARM processors of 64 bits: grade them on \
         the page for teachers, where the browser confines them"
    )]
    System,
    /// The running kernel lacks a part, or it is turned off.
    #[error(
        "programs of others cannot be confined, because {missing}: grade them on the page for teachers, where the \
         browser confines them"
    )]
    Kernel {
        /// What it lacks, as the cause of a sentence.
        missing: &'static str,
        /// What the kernel said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The process has more than one thread, and the others would stay free.
    #[error(
        "a process of {count} threads cannot confine itself: set OPENBLAS_NUM_THREADS=1 before numpy is imported"
    )]
    Threads {
        /// How many there are.
        count: usize,
    },
    /// A path of the confinement cannot be opened.
    #[error("cannot allow {}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Another step failed.
    #[error("cannot {step}")]
    Step {
        /// What was to be done, as a verb and its object.
        step: &'static str,
        /// What the system said.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Confines the process that calls this, for the rest of its life.
///
/// The caller is the only thread, and has imported or opened all that it needs beyond `confinement`.
///
/// # Errors
///
/// [`ConfineError::System`] and [`ConfineError::Kernel`] where no program can be confined; [`ConfineError::Threads`]
/// in a process with several threads; [`ConfineError::Path`] for a path that cannot be opened;
/// [`ConfineError::Step`] for the rest. After any error the process may be confined in part: it must end, and the
/// program must not run.
pub fn confine(confinement: &Confinement) -> Result<(), ConfineError> {
    system::confine(confinement)
}

/// Whether this system can confine programs. Nothing is changed: a command asks this before it starts a process.
///
/// # Errors
///
/// [`ConfineError::System`] or [`ConfineError::Kernel`], where it cannot.
pub fn check_system() -> Result<(), ConfineError> {
    system::check()
}
