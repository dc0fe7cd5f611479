//! The part inside of the watched program: takes each event of the allocator, and sends it from a thread.
#![expect(unsafe_code, reason = "PyTorch's functions are called, and PyTorch and Python call these")]

use std::cell::UnsafeCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use crate::JobError;
use crate::frames::{
    ACTIONS, DeviceMemory, Encoder, Event, FORMAT, Frame, Hello, MAX_DEVICES, StackFrame, StackText,
};
use crate::python_frames;
use crate::ring::{Counter, Reader, Writer, ring};
use crate::symbols::Symbols;

/// How many events of a device wait at most.
const EVENTS: usize = 1 << 16;
/// How many events one frame has at most.
const EVENTS_A_FRAME: usize = 1 << 12;
/// How many steps and snapshots wait at most.
const MAX_MARKS: usize = 1 << 12;
/// The most different stacks of a device.
const MAX_STACKS: usize = 1 << 16;
/// Between two looks at the rings.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the end of the program waits for a reader that does not read.
const MAX_WAIT_AT_END: Duration = Duration::from_secs(2);
/// The bytes of the allocation that tells whether entries are understood.
const TRIED: u64 = 1536;
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
    stacks: HashMap<u64, u32>,
    texts: Sender<StackText>,
}

/// One device: what the thread reads.
struct DeviceReader {
    events: Reader<Event>,
    texts: Receiver<StackText>,
    /// Events before the first that is sent.
    skipped: u64,
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

struct Job {
    devices: Vec<Device>,
    /// The readers' counts, for positions of steps.
    marks: Mutex<VecDeque<Mark>>,
    /// Whether events are taken.
    is_on: AtomicBool,
    /// Whether the thread waits, because a snapshot is being taken.
    is_held: AtomicBool,
    /// Whether events were lost since the last snapshot.
    wants_snapshot: AtomicBool,
    is_ending: AtomicBool,
    has_ended: Mutex<bool>,
    ended: Condvar,
    pid: u32,
}

static JOB: OnceLock<Job> = OnceLock::new();

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
    if usize::from(action) >= ACTIONS.len() {
        return;
    }
    // SAFETY: the allocator's lock of the device is held.
    let side = unsafe { &mut *device.side.get() };
    if action == SNAPSHOT {
        device.snapshot[0].store(device.counter.written(), Ordering::Relaxed);
        device.snapshot[1].store(device.counter.lost(), Ordering::Relaxed);
        return;
    }
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // A free has the line of whatever made an object end, which says nothing.
    let stack = if matches!(action, 1 | FREE_COMPLETED) { 0 } else { side.stack() };
    side.events.push(Event {
        action,
        addr: entry.addr,
        size: entry.size,
        time_us: u64::try_from(time.as_micros()).unwrap_or(0),
        stream: entry.stream,
        pool: entry.pool,
        stack,
    });
}

impl Side {
    /// The number of this thread's stack; 0 for none.
    fn stack(&mut self) -> u32 {
        let calls = python_frames::calls();
        if calls.is_empty() {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        calls.hash(&mut hasher);
        let next = u32::try_from(self.stacks.len() + 1).unwrap_or(0);
        let hash = hasher.finish();
        if let Some(number) = self.stacks.get(&hash) {
            return *number;
        }
        if self.stacks.len() >= MAX_STACKS {
            return 0;
        }
        self.stacks.insert(hash, next);
        let frames = calls.into_iter().map(python_frames::frame).collect();
        // Sent before its first event is written, so that the reader has it first.
        let _ = self.texts.send(StackText { number: next, frames });
        next
    }
}

fn device() -> (Device, DeviceReader) {
    let (writer, events) = ring(EVENTS);
    let counter = writer.counter();
    let (sender, texts) = channel();
    let side = Side { events: writer, stacks: HashMap::new(), texts: sender };
    let device = Device { side: UnsafeCell::new(side), counter, snapshot: [0; 2].map(AtomicU64::new) };
    (device, DeviceReader { events, texts, skipped: 0, lost: 0 })
}

/// Attaches the tracker, tries it and starts the thread that sends.
fn start(socket: &str, hello: &Hello) -> Result<(), JobError> {
    if JOB.get().is_some() {
        return Err(JobError::Twice);
    }
    let stream = UnixStream::connect(socket).map_err(JobError::NoReader)?;
    let symbols = Symbols::find()?;
    let (devices, mut readers): (Vec<_>, Vec<_>) =
        (0..hello.devices.len().clamp(1, MAX_DEVICES)).map(|_| device()).unzip();
    let job = JOB.get_or_init(|| Job {
        devices,
        marks: Mutex::default(),
        is_on: AtomicBool::new(true),
        is_held: AtomicBool::new(true),
        wants_snapshot: AtomicBool::new(false),
        is_ending: AtomicBool::new(false),
        has_ended: Mutex::new(false),
        ended: Condvar::new(),
        pid: std::process::id(),
    });
    if let Err(error) = attach(&symbols, &mut readers) {
        job.is_on.store(false, Ordering::Relaxed);
        return Err(error);
    }
    let mut out = Vec::new();
    let mut encoder = Encoder::default();
    encoder.write(&Frame::Hello(Hello { format: FORMAT, ..hello.clone() }), &mut out);
    let sender = SendingThread { job, stream, encoder, out, readers };
    let thread = std::thread::Builder::new().name("blockyard-watch".to_owned());
    if let Err(error) = thread.spawn(move || sender.run()) {
        job.is_on.store(false, Ordering::Relaxed);
        return Err(JobError::NoReader(error));
    }
    Ok(())
}

/// Attaches the tracker and makes one allocation, whose entries must be those that are expected.
fn attach(symbols: &Symbols, readers: &mut [DeviceReader]) -> Result<(), JobError> {
    let mut function = Function { data: [0; 2], manager: manage, invoker: take };
    // SAFETY: the addresses are those of functions with these types, by their names. C++ passes `this` first, and
    // a `std::function` by the address of a copy that the caller owns.
    unsafe {
        let allocator = *(symbols.allocator as *const *mut c_void);
        if allocator.is_null() {
            return Err(JobError::NoLibrary);
        }
        let attach: extern "C" fn(*mut c_void, *mut Function) = std::mem::transmute(symbols.attach);
        let raw_alloc: extern "C" fn(*mut c_void, u64) -> u64 = std::mem::transmute(symbols.raw_alloc);
        let raw_delete: extern "C" fn(*mut c_void, u64) = std::mem::transmute(symbols.raw_delete);
        attach(allocator, &raw mut function);
        let addr = raw_alloc(allocator, TRIED);
        let allocated = taken(readers);
        raw_delete(allocator, addr);
        let freed = taken(readers);
        let is_alloc = |event: &Event| (event.action, event.addr, event.size) == (ALLOC, addr, TRIED);
        let is_free = |event: &Event| (event.action, event.addr) == (FREE_COMPLETED, addr);
        if !allocated.last().is_some_and(is_alloc) || !freed.last().is_some_and(is_free) {
            return Err(JobError::Layout);
        }
    }
    for reader in readers {
        reader.skipped = reader.events.written();
    }
    Ok(())
}

fn taken(readers: &mut [DeviceReader]) -> Vec<Event> {
    let mut events = Vec::new();
    for reader in readers {
        reader.events.take(u64::MAX, EVENTS, &mut events);
    }
    events
}

/// The thread that sends.
struct SendingThread {
    job: &'static Job,
    stream: UnixStream,
    encoder: Encoder,
    out: Vec<u8>,
    readers: Vec<DeviceReader>,
}

impl SendingThread {
    fn run(mut self) {
        loop {
            // Read before the rings: what was written before the end is sent.
            let is_ending = self.job.is_ending.load(Ordering::Acquire);
            if (!self.job.is_held.load(Ordering::Acquire) || is_ending) && self.pass().is_err() {
                // Nobody reads any more: nothing is taken from now on.
                self.job.is_on.store(false, Ordering::Relaxed);
                break;
            }
            if is_ending {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        *locked(&self.job.has_ended) = true;
        self.job.ended.notify_all();
    }

    /// Sends all that waits.
    fn pass(&mut self) -> std::io::Result<()> {
        let (marks, ends, lost): (Vec<Mark>, Vec<u64>, Vec<u64>) = {
            // A step reads its positions under this lock, so that none of its events was sent already. What is lost
            // from now on comes after these marks, and maybe after later ones.
            let mut marks = locked(&self.job.marks);
            let counts = self.readers.iter().map(|reader| (reader.events.written(), reader.events.lost()));
            let (ends, lost) = counts.unzip();
            (marks.drain(..).collect(), ends, lost)
        };
        for mark in marks {
            self.events_to(&mark.positions)?;
            let frame = match mark.kind {
                MarkKind::Step { number, memory } => Frame::Step { number, memory },
                MarkKind::Snapshot { pickle, lost } => {
                    self.write_gaps(&lost);
                    let skipped = self.readers.iter().map(|reader| reader.skipped);
                    let positions =
                        mark.positions.iter().zip(skipped).map(|(at, skipped)| at.saturating_sub(skipped));
                    Frame::Snapshot { positions: positions.collect(), pickle }
                }
                MarkKind::OutOfMemory { device, size } => Frame::OutOfMemory { device, size },
                MarkKind::Note(text) => Frame::Note(text),
            };
            self.encoder.write(&frame, &mut self.out);
            self.send()?;
        }
        self.events_to(&ends)?;
        // After the marks: a snapshot among them may be older than the loss.
        if self.write_gaps(&lost) {
            self.job.wants_snapshot.store(true, Ordering::Relaxed);
        }
        self.send()
    }

    /// Says how many events were lost up to these counts, and whether any were.
    fn write_gaps(&mut self, lost: &[u64]) -> bool {
        let mut is_any = false;
        for ((device, reader), lost) in self.readers.iter_mut().enumerate().zip(lost) {
            if *lost > reader.lost {
                is_any = true;
                self.encoder.write(&Frame::Gap { device, lost: lost - reader.lost }, &mut self.out);
                reader.lost = *lost;
            }
        }
        is_any
    }

    fn events_to(&mut self, ends: &[u64]) -> std::io::Result<()> {
        let mut events = Vec::new();
        for (device, end) in (0..self.readers.len()).zip(ends) {
            loop {
                events.clear();
                let Some(reader) = self.readers.get_mut(device) else { break };
                reader.events.take(*end, EVENTS_A_FRAME, &mut events);
                if events.is_empty() {
                    break;
                }
                for stack in reader.texts.try_iter() {
                    self.encoder.write(&Frame::Stack { device, stack }, &mut self.out);
                }
                let frame = Frame::Events { device, events: std::mem::take(&mut events) };
                self.encoder.write(&frame, &mut self.out);
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> std::io::Result<()> {
        let mut done = 0;
        while let Some(rest) = self.out.get(done..).filter(|rest| !rest.is_empty()) {
            // SAFETY: the bytes live during the call. A reader that ended is an error and no signal.
            let sent = unsafe {
                libc::send(self.stream.as_raw_fd(), rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL)
            };
            if let Ok(sent) = usize::try_from(sent) {
                done += sent;
                continue;
            }
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        self.out.clear();
        Ok(())
    }
}

impl Job {
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

/// A text of C.
///
/// # Safety
///
/// The pointer is null, or that of a text that ends with 0.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// A sentence for Python, which lives until the process ends; null for none.
fn sentence(result: Result<(), String>) -> *const c_char {
    match result.map_err(CString::new) {
        Err(Ok(text)) => text.into_raw(),
        Err(Err(_)) | Ok(()) => std::ptr::null(),
    }
}

/// Watches this process: connects to the socket and attaches to the allocator. `hello` is [`Hello`] as JSON.
/// Returns null, or a sentence that says why this process is not watched. The thread waits for the first
/// snapshot.
///
/// # Safety
///
/// Both are texts that end with 0. PyTorch has initialized CUDA, and uses its native allocator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_watch_start(socket: *const c_char, hello: *const c_char) -> *const c_char {
    // SAFETY: by the caller.
    let (socket, hello) = unsafe { (text(socket), text(hello)) };
    let hello = serde_json::from_str(&hello).unwrap_or_default();
    sentence(start(&socket, &hello).map_err(|error| error.to_string()))
}

/// Takes Python stacks from now on, if the innermost frame of the calling thread is this one. Returns null, or
/// a sentence that says why no stack is taken.
///
/// # Safety
///
/// Both are texts that end with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_watch_stacks(
    minor: u32,
    file: *const c_char,
    name: *const c_char,
    line: u32,
) -> *const c_char {
    // SAFETY: by the caller.
    let known = unsafe { StackFrame { file: text(file), name: text(name), line } };
    sentence(python_frames::set_on(minor, &known))
}

/// Ends a step. `memory` has three numbers for each device: the bytes that can be reserved, all bytes, and the limit or 0. Returns
/// whether a snapshot is wanted, because events were lost.
///
/// # Safety
///
/// `memory` has three numbers for each of so many `devices`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_watch_step(number: u64, memory: *const u64, devices: usize) -> c_int {
    let Some(job) = JOB.get() else { return 0 };
    let numbers = if memory.is_null() {
        &[]
    } else {
        // SAFETY: by the caller.
        unsafe { std::slice::from_raw_parts(memory, devices.min(MAX_DEVICES) * 3) }
    };
    let of = |three: &[u64]| match *three {
        [available, total, limit] => DeviceMemory { available, total, limit },
        _ => DeviceMemory::default(),
    };
    job.mark(MarkKind::Step { number, memory: numbers.chunks_exact(3).map(of).collect() });
    c_int::from(job.is_on.load(Ordering::Relaxed) && job.wants_snapshot.load(Ordering::Relaxed))
}

/// Holds the thread while a snapshot is taken, so that no event after it is sent before it.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_watch_hold() {
    if let Some(job) = JOB.get() {
        job.wants_snapshot.store(false, Ordering::Relaxed);
        job.is_held.store(true, Ordering::Release);
    }
}

/// Sends the snapshot that was just taken, as a pickle, and lets the thread go on. Without bytes the thread
/// goes on alone.
///
/// # Safety
///
/// `pickle` has so many bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_watch_snapshot(pickle: *const u8, length: usize) {
    let Some(job) = JOB.get() else { return };
    if !pickle.is_null() {
        // SAFETY: by the caller.
        let bytes = unsafe { std::slice::from_raw_parts(pickle, length) };
        job.mark(MarkKind::Snapshot { pickle: bytes.to_vec(), lost: job.at_snapshot(1) });
    }
    job.is_held.store(false, Ordering::Release);
}

/// Says that a request found no memory.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_watch_out_of_memory(device: usize, size: u64) {
    if let Some(job) = JOB.get() {
        job.mark(MarkKind::OutOfMemory { device: device.min(MAX_DEVICES - 1), size });
    }
}

/// Sends a sentence.
///
/// # Safety
///
/// It is a text that ends with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_watch_note(note: *const c_char) {
    if let Some(job) = JOB.get() {
        // SAFETY: by the caller.
        job.mark(MarkKind::Note(unsafe { text(note) }));
    }
}

/// Sends what is left before the program ends. Waits a little for a reader that does not read, and not longer.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_watch_finish() {
    // A copy of the process has no thread that could send.
    let Some(job) = JOB.get().filter(|job| job.pid == std::process::id()) else { return };
    job.is_ending.store(true, Ordering::Release);
    let ended = locked(&job.has_ended);
    let _ = job.ended.wait_timeout_while(ended, MAX_WAIT_AT_END, |ended| !*ended);
    job.is_on.store(false, Ordering::Relaxed);
}
