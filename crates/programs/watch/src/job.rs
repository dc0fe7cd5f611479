//! The part inside of the watched program: takes each event of the allocator. `sending` sends it from a thread,
//! and `functions` are called by Python.
#![expect(unsafe_code, reason = "PyTorch's functions are called, and PyTorch and Python call these")]

mod clock;
mod functions;
mod sending;

pub use self::functions::{
    blockyard_watch_begin, blockyard_watch_finish, blockyard_watch_hold, blockyard_watch_note,
    blockyard_watch_out_of_memory, blockyard_watch_set_on, blockyard_watch_snapshot, blockyard_watch_stacks,
    blockyard_watch_stacks_from, blockyard_watch_start, blockyard_watch_step,
};

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use blockyard_record::TraceAction;
use rustc_hash::FxHashMap;

use self::clock::Clock;
use self::sending::SendingThread;
use crate::JobError;
use crate::frames::{DeviceMemory, Event, FORMAT, Frame, Hello, MAX_DEVICES, StackText};
use crate::python_frames::{self, Calls};
use crate::ring::{Counter, Reader, Writer, ring};
use crate::symbols::Symbols;

/// How many events of a device wait at most.
const EVENTS: usize = 1 << 16;
/// Another number, for tests.
const EVENTS_VARIABLE: &str = "BLOCKYARD_WATCH_EVENTS";
/// How many steps and snapshots wait at most.
const MAX_MARKS: usize = 1 << 12;
/// The most different stacks of a device.
const MAX_STACKS: usize = 1 << 16;
/// The bytes of the allocation that tells whether entries are understood.
const TRIED: u64 = 1536;
/// From so many bytes on a request has a stack in each program.
const LARGE: u64 = 1 << 20;
/// The most of a program's time that stacks may take: one part in so many.
const MAX_SHARE: u32 = 200;
/// For how long the time of stacks is added up.
const MEASURED: Duration = Duration::from_secs(1);
/// One stack in so many is timed.
const TIMED: u32 = 16;
const ALLOC: u8 = 0;
const FREE_COMPLETED: u8 = 2;
const SNAPSHOT: u8 = 7;

/// `c10::CachingDeviceAllocator::TraceEntry`, as far as its beginning is read.
#[repr(C)]
struct TraceEntry {
    action: i32,
    device: i8,
    addr: u64,
    context: [usize; 2],
    stream: u64,
    size: u64,
    pool: [u64; 2],
    /// By the clock of [`Clock`].
    time: u64,
}

/// `std::function<void(const TraceEntry&)>` of libstdc++.
#[repr(C)]
struct Function {
    data: [usize; 2],
    manager: extern "C" fn(*mut [usize; 2], *const [usize; 2], c_int) -> bool,
    invoker: extern "C" fn(*const [usize; 2], *const TraceEntry),
}

/// One device: what the callback writes.
struct Device {
    /// Only the callback uses it, which the allocator calls under the device's lock.
    side: UnsafeCell<Side>,
    counter: Counter<Event>,
    /// How many events were written, and how many were lost, when the last snapshot was taken.
    snapshot: [AtomicU64; 2],
}

// SAFETY: `side` is used by one thread at a time, see there.
unsafe impl Sync for Device {}

struct Side {
    events: Writer<Event>,
    calls: Calls,
    /// The number of each stack by its hash.
    stacks: FxHashMap<u64, u32>,
    texts: Sender<StackText>,
    /// How many stacks were taken.
    taken: u32,
}

/// One device: what the thread reads.
struct DeviceReader {
    events: Reader<Event>,
    texts: Receiver<StackText>,
    lost: u64,
}

/// A moment of the stream.
struct Mark {
    /// For each device, how many events come before.
    positions: Vec<u64>,
    kind: MarkKind,
}

enum MarkKind {
    Step {
        number: u64,
        memory: Vec<DeviceMemory>,
    },
    Snapshot {
        pickle: Vec<u8>,
        /// For each device, how many events were lost before.
        lost: Vec<u64>,
    },
    OutOfMemory {
        device: usize,
        size: u64,
    },
    Note(String),
}

struct WatchState {
    devices: Vec<Device>,
    /// The moments that wait to be sent.
    marks: Mutex<VecDeque<Mark>>,
    /// Whether events are taken.
    is_on: AtomicBool,
    /// Whether the thread waits, because a snapshot is being taken.
    is_held: AtomicBool,
    /// Whether events were lost since the last snapshot.
    wants_snapshot: AtomicBool,
    stacks: StackRule,
    is_ending: AtomicBool,
    has_ended: Mutex<bool>,
    ended: Condvar,
    pid: u32,
}

/// Which requests have a stack. All have one as long as that takes little of the program's time.
#[derive(Default)]
struct StackRule {
    /// Those of so many bytes and more.
    from: AtomicU64,
    /// The time of stacks since `measured`.
    spent_nanos: AtomicU64,
    /// Since when the time is added up; `None` where `from` stays.
    measured: Mutex<Option<Instant>>,
}

static JOB: OnceLock<WatchState> = OnceLock::new();
/// What sends, before it begins.
static WAITING: Mutex<Option<SendingThread>> = Mutex::new(None);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn manage(to: *mut [usize; 2], from: *const [usize; 2], operation: c_int) -> bool {
    // SAFETY: libstdc++ passes its own places: 0 asks for the type, 1 for the address, 2 copies, 3 destroys.
    unsafe {
        match operation {
            0 => to.cast::<usize>().write(0),
            1 => to.cast::<*const [usize; 2]>().write(from),
            2 => to.write(*from),
            _ => {}
        }
    }
    false
}

/// PyTorch's allocator calls this function for each entry of its trace, under the lock of the device.
extern "C" fn take(_function: *const [usize; 2], entry: *const TraceEntry) {
    let Some(job) = JOB.get() else { return };
    if !job.is_on.load(Ordering::Relaxed) || entry.is_null() {
        return;
    }
    // SAFETY: PyTorch passes an entry that lives during the call.
    let entry = unsafe { &*entry };
    let Some(device) = usize::try_from(entry.device).ok().and_then(|index| job.devices.get(index)) else {
        return;
    };
    let Ok(action) = u8::try_from(entry.action) else { return };
    if TraceAction::from_number(action.into()).is_none() {
        return;
    }
    // SAFETY: the allocator's lock of the device is held.
    let side = unsafe { &mut *device.side.get() };
    if action == SNAPSHOT {
        device.snapshot[0].store(device.counter.written(), Ordering::Relaxed);
        device.snapshot[1].store(device.counter.lost(), Ordering::Relaxed);
        return;
    }
    let has_stack = match action {
        ALLOC => entry.size >= job.stacks.from.load(Ordering::Relaxed),
        // A free has the line of whatever made an object end, which says nothing.
        _ => !matches!(action, 1 | FREE_COMPLETED),
    };
    let stack = if has_stack { side.stack(&job.stacks.spent_nanos) } else { 0 };
    side.events.push(Event {
        action,
        addr: entry.addr,
        size: entry.size,
        // The thread that sends makes it microseconds.
        time_us: entry.time,
        stream: entry.stream,
        pool: entry.pool,
        stack,
    });
}

impl Side {
    /// The number of this thread's stack; 0 for none.
    fn stack(&mut self, spent_nanos: &AtomicU64) -> u32 {
        self.taken = self.taken.wrapping_add(1);
        let began = self.taken.is_multiple_of(TIMED).then(Instant::now);
        let hash = self.calls.take();
        let known = self.stacks.get(&hash).copied();
        if let Some(began) = began {
            let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(0);
            spent_nanos.fetch_add(nanos * u64::from(TIMED), Ordering::Relaxed);
        }
        known.unwrap_or_else(|| self.add_stack(hash))
    }

    /// The number of the stack that was just taken, which is new.
    fn add_stack(&mut self, hash: u64) -> u32 {
        if self.calls.all().is_empty() || self.stacks.len() >= MAX_STACKS {
            return 0;
        }
        let next = u32::try_from(self.stacks.len() + 1).unwrap_or(0);
        self.stacks.insert(hash, next);
        let frames = self.calls.all().iter().map(|call| python_frames::frame(*call)).collect();
        // Sent before its first event is written, so that the reader has it first.
        let _ = self.texts.send(StackText { number: next, frames });
        next
    }
}

fn device() -> (Device, DeviceReader) {
    let most = std::env::var(EVENTS_VARIABLE).ok().and_then(|most| most.parse().ok());
    let (writer, events) = ring(most.unwrap_or(EVENTS));
    let counter = writer.counter();
    let (sender, texts) = channel();
    let side = Side {
        events: writer,
        calls: Calls::default(),
        stacks: FxHashMap::default(),
        texts: sender,
        taken: 0,
    };
    let device = Device { side: UnsafeCell::new(side), counter, snapshot: [0; 2].map(AtomicU64::new) };
    (device, DeviceReader { events, texts, lost: 0 })
}

/// Attaches the tracker. Events are sent once [`begin`] was called.
fn start(socket: &str, hello: &Hello) -> Result<(), JobError> {
    if JOB.get().is_some() {
        return Err(JobError::Twice);
    }
    let stream = UnixStream::connect(socket).map_err(JobError::NoReader)?;
    let symbols = Symbols::find()?;
    let (devices, readers): (Vec<_>, Vec<_>) =
        (0..hello.devices.len().clamp(1, MAX_DEVICES)).map(|_| device()).unzip();
    let job = JOB.get_or_init(|| WatchState {
        devices,
        marks: Mutex::default(),
        is_on: AtomicBool::new(true),
        is_held: AtomicBool::new(true),
        wants_snapshot: AtomicBool::new(false),
        stacks: StackRule { measured: Mutex::new(Some(Instant::now())), ..StackRule::default() },
        is_ending: AtomicBool::new(false),
        has_ended: Mutex::new(false),
        ended: Condvar::new(),
        pid: std::process::id(),
    });
    let mut out = Vec::new();
    Frame::Hello(Hello { format: FORMAT, ..hello.clone() }).write(&mut out);
    let mut function = Function { data: [0; 2], manager: manage, invoker: take };
    // SAFETY: the addresses are those of the pointer and of a function with these types, by their names. C++ passes
    // `this` first, and a `std::function` by the address of a copy that the caller owns.
    unsafe {
        let allocator = *(symbols.allocator as *const *mut c_void);
        if allocator.is_null() {
            return Err(JobError::NoLibrary);
        }
        let attach: extern "C" fn(*mut c_void, *mut Function) = std::mem::transmute(symbols.attach);
        attach(allocator, &raw mut function);
    }
    *locked(&WAITING) = Some(SendingThread { job, stream, out, readers, clock: Clock::now() });
    Ok(())
}

/// Starts the thread that sends, if the events are understood: an allocation of [`TRIED`] bytes at this address was
/// made and freed since [`start`].
fn begin(addr: u64) -> Result<(), JobError> {
    let Some(mut sender) = locked(&WAITING).take() else { return Err(JobError::Twice) };
    let job = sender.job;
    let mut events = Vec::new();
    for reader in &mut sender.readers {
        reader.events.take(u64::MAX, EVENTS, &mut events);
    }
    let is_alloc = |event: &Event| (event.action, event.addr, event.size) == (ALLOC, addr, TRIED);
    let is_free = |event: &Event| (event.action, event.addr) == (FREE_COMPLETED, addr);
    let result = if events.iter().skip_while(|event| !is_alloc(event)).any(is_free) {
        let thread = std::thread::Builder::new().name("blockyard-watch".to_owned());
        thread.spawn(move || sender.run()).map(drop).map_err(JobError::NoReader)
    } else {
        Err(JobError::Layout)
    };
    if result.is_err() {
        job.is_on.store(false, Ordering::Relaxed);
    }
    result
}

impl StackRule {
    /// Takes the stacks of requests of so many bytes and more from now on, whatever it costs.
    fn fix(&self, from: u64) {
        self.from.store(from, Ordering::Relaxed);
        *locked(&self.measured) = None;
    }

    /// At the end of a step: leaves small requests without a stack, if stacks have taken too much of the program's
    /// time. Returns a sentence if so.
    fn limit(&self) -> Option<String> {
        let mut measured = locked(&self.measured);
        let elapsed = measured.as_ref()?.elapsed();
        if elapsed < MEASURED {
            return None;
        }
        let spent = Duration::from_nanos(self.spent_nanos.swap(0, Ordering::Relaxed));
        *measured = Some(Instant::now());
        if !is_too_much(spent, elapsed) {
            return None;
        }
        drop(measured);
        self.fix(LARGE);
        let percent = 100.0 * spent.as_secs_f64() / elapsed.as_secs_f64();
        Some(format!(
            "finding the lines of requests took {percent:.1} percent of the time: from here on requests below \
             1 MiB have no line (--all-lines keeps them)"
        ))
    }
}

fn is_too_much(spent: Duration, elapsed: Duration) -> bool {
    spent > elapsed / MAX_SHARE
}

impl WatchState {
    /// Adds a moment; it is left out where too many wait.
    fn mark(&self, kind: MarkKind) {
        let mut marks = locked(&self.marks);
        if marks.len() < MAX_MARKS {
            // Counts of other threads may be a little older.
            let positions = match &kind {
                MarkKind::Snapshot { .. } => self.at_snapshot(0),
                _ => self.devices.iter().map(|device| device.counter.written()).collect(),
            };
            marks.push_back(Mark { positions, kind });
        }
    }

    /// For each device, how many events were written (0) or lost (1) when the last snapshot was taken.
    fn at_snapshot(&self, which: usize) -> Vec<u64> {
        let of =
            |device: &Device| device.snapshot.get(which).map_or(0, |count| count.load(Ordering::Relaxed));
        self.devices.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(spent: Duration, elapsed: Duration) -> StackRule {
        let spent_nanos = AtomicU64::new(u64::try_from(spent.as_nanos()).unwrap());
        let measured = Mutex::new(Instant::now().checked_sub(elapsed));
        StackRule { spent_nanos, measured, ..StackRule::default() }
    }

    #[test]
    fn stacks_that_take_too_long_are_those_of_large_requests_from_then_on() {
        let from = |rule: &StackRule| rule.from.load(Ordering::Relaxed);
        let [second, milli] = [Duration::from_secs(1), Duration::from_millis(1)];
        let cheap = rule(milli, second);
        assert_eq!((cheap.limit(), from(&cheap)), (None, 0));
        // What was spent counts for its own time alone.
        assert_eq!(cheap.spent_nanos.load(Ordering::Relaxed), 0);
        let early = rule(second, milli);
        assert_eq!((early.limit(), from(&early)), (None, 0));
        let dear = rule(second, second * 4);
        assert!(dear.limit().unwrap().starts_with("finding the lines of requests took 25.0 percent"));
        assert_eq!((dear.limit(), from(&dear)), (None, LARGE));
        let fixed = rule(second, second * 4);
        fixed.fix(0);
        assert_eq!((fixed.limit(), from(&fixed)), (None, 0));
    }
}
