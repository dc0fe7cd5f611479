//! Limits of resources that the kernel counts for a process.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use blockyard_record::Bytes;
use rustix::param::page_size;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::step;
use crate::{ConfineError, Confinement, MAX_THREADS};

/// Addresses beside the memory: the C library reserves 64 MiB or 128 MiB for each thread's allocations, of
/// which it uses little. What is written to is counted by `RLIMIT_DATA`; this limit bounds the rest, such as
/// tables of pages.
const ADDRESS_ROOM: Bytes = Bytes::gib(8);
/// Descriptors, each of which may hold a pipe of 64 KiB in the kernel.
const MAX_DESCRIPTORS: u64 = 256;

pub(super) fn set(confinement: &Confinement) -> Result<(), ConfineError> {
    let taken = taken_memory().map_err(step("read the size of the process in /proc"))?;
    let threads = threads_of_user().map_err(step("count the threads of the user in /proc"))?;
    let memory = confinement.memory.get();
    let data = taken.data.saturating_add(memory);
    let addresses = taken.addresses.saturating_add(memory).saturating_add(ADDRESS_ROOM.get());
    let seconds = processor_seconds().saturating_add(whole_seconds(confinement.processor_time));
    let limits = [
        (Resource::Data, data),
        (Resource::As, addresses),
        (Resource::Fsize, memory),
        (Resource::Nproc, threads.saturating_add(MAX_THREADS)),
        (Resource::Nofile, MAX_DESCRIPTORS),
        (Resource::Core, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
    ];
    for (resource, limit) in limits {
        lower(resource, limit, limit).map_err(step("limit the resources"))?;
    }
    // The signal at the first limit says what ended the process. A program may ignore it, and not the second.
    lower(Resource::Cpu, seconds, seconds.saturating_add(1)).map_err(step("limit the time of the processor"))
}

/// Sets a limit, unless a lower one holds.
fn lower(resource: Resource, current: u64, maximum: u64) -> rustix::io::Result<()> {
    let before = getrlimit(resource);
    let least = |limit: u64, other: Option<u64>| Some(other.map_or(limit, |other| other.min(limit)));
    let maximum = least(maximum, before.maximum);
    let current = least(least(current, before.current).unwrap_or(current), maximum);
    setrlimit(resource, Rlimit { current, maximum })
}

/// What the process has, in bytes.
struct TakenMemory {
    addresses: u64,
    /// What `RLIMIT_DATA` counts, and the stack.
    data: u64,
}

fn taken_memory() -> io::Result<TakenMemory> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages: Vec<u64> = text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    let bytes = |index: usize| {
        let bytes = pages.get(index)?.checked_mul(u64::try_from(page_size()).ok()?);
        bytes.filter(|bytes| *bytes > 0)
    };
    let taken = || Some(TakenMemory { addresses: bytes(0)?, data: bytes(5)? });
    taken().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/self/statm has other fields"))
}

/// The threads in all processes of this user, as far as they are seen: `RLIMIT_NPROC` counts them together.
fn threads_of_user() -> io::Result<u64> {
    let user = geteuid().as_raw();
    let mut count = 0;
    for process in fs::read_dir("/proc")? {
        let process = process?;
        let is_process = process.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        // A process may end while it is looked at.
        if is_process && process.metadata().is_ok_and(|metadata| metadata.uid() == user) {
            count += fs::read_dir(process.path().join("task")).map_or(0, Iterator::count);
        }
    }
    Ok(u64::try_from(count).unwrap_or(u64::MAX))
}

/// The seconds that the process has worked so far, rounded up.
fn processor_seconds() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0).saturating_add(u64::from(time.tv_nsec > 0))
}

fn whole_seconds(time: std::time::Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}
