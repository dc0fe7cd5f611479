//! NCCL: ranks that run send each other bytes that are known and few. A rank that does not run is assumed to
//! have the bytes of this rank. All other bytes that a rank receives are unknown.
#![expect(unsafe_code, reason = "functions are exported under NCCL's names")]

mod group;
mod reduce;
mod store;
mod watchdog;

use std::cell::RefCell;
use std::env;
use std::ffi::{CStr, c_char, c_int, c_longlong};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use blockyard_hooks::variables;

use self::group::{Communicator, Part, known, write};
use self::reduce::{element, reduce};
pub(crate) use self::watchdog::is_pending;
use crate::abi::{In, Out, text};
use crate::handles::Handles;
use crate::memory::Certainty;
use crate::non_pytorch::{self, NonPytorchUse};
use crate::runtime::errors::{INVALID_HANDLE, SUCCESS};
use crate::runtime::memory::{allocate, release};
use crate::state::state;

static COMMUNICATORS: Mutex<Handles<Communicator>> = Mutex::new(Handles::above(0x5000_0000));

/// `ncclUniqueId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
struct UniqueId([u8; 128]);

impl UniqueId {
    /// A new id, which no other process has.
    fn new() -> Self {
        static COUNT: Mutex<u64> = Mutex::new(0);
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let text = format!("blockyard {} {count} {time}", std::process::id());
        let mut id = [b' '; 128];
        id.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte);
        Self(id)
    }
}

/// Reports the assumption about a collective over memory of the host (Gloo's), where some ranks do not run.
pub(crate) fn note_host_collective(operator: &CStr) {
    let Some(name) = operator.to_bytes().strip_prefix(b"c10d::") else { return };
    if !name.starts_with(b"barrier") && has_absent() {
        crate::report::report_estimate(
            "ranks that do not run have no part in a collective over memory of the host: what is gathered of them is this rank's own, and \
             nothing of them is summed",
        );
    }
}

/// Whether some ranks of the program do not run.
fn has_absent() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let ranks = env::var(variables::RANKS).unwrap_or_default();
        let world = env::var("WORLD_SIZE").ok().and_then(|world| world.parse().ok()).unwrap_or(0);
        !ranks.is_empty() && ranks.split(',').count() < world
    })
}

/// `NCCL_SPLIT_NOCOLOR`.
const NO_COLOR: c_int = -1;

fn communicators() -> std::sync::MutexGuard<'static, Handles<Communicator>> {
    COMMUNICATORS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unsigned(number: c_int) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn create(to: Out<usize>, ranks: c_int, id: UniqueId, rank: c_int) -> c_int {
    let group = Communicator::meet(&id, Some(unsigned(ranks)), unsigned(rank));
    non_pytorch::follow(NonPytorchUse::Communicator { ranks: unsigned(ranks) });
    to.put(communicators().add(group));
    SUCCESS
}

/// Acts with a group. The lock is not held meanwhile: the act may wait for other ranks.
fn with(handle: usize, act: impl FnOnce(&mut Communicator)) -> c_int {
    let found = communicators().get(handle).cloned();
    let Some(mut group) = found else { return INVALID_HANDLE };
    act(&mut group);
    if let Some(place) = communicators().get_mut(handle) {
        *place = group;
    }
    SUCCESS
}

/// A collective of a group. NCCL takes buffers at the first.
fn collective(handle: usize, act: impl FnOnce(&mut Communicator)) -> c_int {
    with(handle, |group| {
        if !std::mem::replace(&mut group.has_collectives, true) {
            non_pytorch::follow(NonPytorchUse::Collective { ranks: group.ranks.unwrap_or(0) });
        }
        act(group);
    })
}

/// Messages within a group, to other ranks or from them. NCCL takes further buffers at the first.
fn note_message(group: &mut Communicator, is_sent: bool) {
    let ranks = group.ranks.unwrap_or(0);
    if !group.has_sent && !group.has_received {
        non_pytorch::follow(NonPytorchUse::Message { ranks });
    }
    let (has, event) = if is_sent {
        (&mut group.has_sent, NonPytorchUse::FirstSend { ranks })
    } else {
        (&mut group.has_received, NonPytorchUse::FirstReceive { ranks })
    };
    if !std::mem::replace(has, true) {
        non_pytorch::follow(event);
    }
}

fn remove(handle: usize) -> c_int {
    watchdog::hurry();
    if communicators().remove(handle).is_some() { SUCCESS } else { INVALID_HANDLE }
}

/// The sum of all parts; a part that is less sure makes the sum less sure.
fn reduced(parts: &[Part], kind: c_int, operator: c_int) -> Part {
    let all: Option<Vec<&(Vec<u8>, Certainty)>> = parts.iter().map(Option::as_ref).collect();
    let all = all.filter(|all| !all.is_empty())?;
    if let [(bytes, certainty)] = all.as_slice() {
        return Some((bytes.clone(), *certainty));
    }
    let bytes: Vec<&[u8]> = all.iter().map(|part| part.0.as_slice()).collect();
    let (sum, certainty) = reduce(&bytes, kind, operator)?;
    Some((sum, all.iter().map(|part| part.1).fold(certainty, Certainty::max)))
}

/// Bytes of this many elements.
fn bytes_of(count: u64, kind: c_int) -> u64 {
    count.saturating_mul(element(kind).unwrap_or(8))
}

/// Makes all bytes from an address to the end of its taken range unknown.
fn forget_after(from: u64) {
    let mut state = state();
    let end = state.devices.end_of(from);
    state.devices.mark(from, end, Certainty::Unknown);
}

fn all_gather(from: u64, to: u64, bytes: u64, group: &mut Communicator) {
    let parts = group.exchange(&known(from, bytes), bytes);
    if group.ranks.is_none() {
        forget_after(to);
    }
    for (part, rank) in parts.iter().zip(0_u64..) {
        write(to.saturating_add(rank.saturating_mul(bytes)), bytes, part);
    }
}

fn broadcast(from: u64, to: u64, bytes: u64, root: u64, group: &mut Communicator) {
    let is_root = root == group.rank;
    // A receive from a rank that does not run leaves the bytes as they are.
    let own = known(if is_root { from } else { to }, bytes);
    let mut parts = group.exchange(&own, bytes);
    let root = usize::try_from(root).unwrap_or(usize::MAX);
    let part = if root < parts.len() { parts.swap_remove(root) } else { None };
    write(to, bytes, &part);
}

fn all_reduce(from: u64, to: u64, bytes: u64, kind: c_int, operator: c_int, group: &mut Communicator) {
    let parts = group.exchange(&known(from, bytes), bytes);
    write(to, bytes, &reduced(&parts, kind, operator));
}

fn reduce_scatter(from: u64, to: u64, bytes: u64, kind: c_int, operator: c_int, group: &mut Communicator) {
    let all = bytes.saturating_mul(group.ranks.unwrap_or(1));
    let parts = group.exchange(&known(from, all), all);
    let range = usize::try_from(group.rank.saturating_mul(bytes))
        .ok()
        .zip(usize::try_from(group.rank.saturating_add(1).saturating_mul(bytes)).ok());
    let own = |part: &Part| {
        let (bytes, certainty) = part.as_ref()?;
        let (start, end) = range?;
        Some((bytes.get(start..end)?.to_vec(), *certainty))
    };
    let parts: Vec<Part> = parts.iter().map(own).collect();
    write(to, bytes, &reduced(&parts, kind, operator));
}

fn all_to_all(from: u64, to: u64, bytes: u64, group: &mut Communicator) {
    let ranks = group.ranks.unwrap_or(1);
    let all = bytes.saturating_mul(ranks);
    let parts = group.exchange(&known(from, all), all);
    let start = usize::try_from(group.rank.saturating_mul(bytes)).unwrap_or(usize::MAX);
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    for (part, rank) in parts.iter().zip(0_u64..) {
        let of_this = part.as_ref().and_then(|(bytes, certainty)| {
            Some((bytes.get(start..start.checked_add(length)?)?.to_vec(), *certainty))
        });
        write(to.saturating_add(rank.saturating_mul(bytes)), bytes, &of_this);
    }
}

/// A send or a receive, which waits for the end of its group of calls.
#[derive(Clone, Copy, Debug)]
struct Message {
    handle: usize,
    address: u64,
    bytes: u64,
    peer: u64,
    is_sent: bool,
}

thread_local! {
    /// How deep in groups of calls this thread is, and the messages of these.
    static CALLS: RefCell<(u32, Vec<Message>)> = const { RefCell::new((0, Vec::new())) };
}

/// A message, done at once or at the end of the group of calls.
fn message(message: Message) -> c_int {
    let is_within = CALLS.with_borrow_mut(|(depth, messages)| {
        messages.push(message);
        *depth > 0
    });
    if !is_within {
        deliver();
    }
    SUCCESS
}

/// Runs the messages of a group of calls: first those that this rank sends, since other ranks wait for them.
fn deliver() {
    let messages = CALLS.with_borrow_mut(|(_, messages)| std::mem::take(messages));
    // What this rank sends to itself.
    let mut own: Vec<Part> = Vec::new();
    for sent in messages.iter().filter(|message| message.is_sent) {
        let part = known(sent.address, sent.bytes);
        with(sent.handle, |group| {
            if sent.peer == group.rank {
                own.push(part);
            } else {
                note_message(group, true);
                group.send(sent.peer, &part, sent.bytes);
            }
        });
    }
    let own = own.into_iter().next().flatten();
    for received in messages.iter().filter(|message| !message.is_sent) {
        with(received.handle, |group| {
            if received.peer != group.rank {
                note_message(group, false);
            }
            let part = if received.peer == group.rank {
                own.clone()
            } else if group.has(received.peer) {
                group.receive(received.peer, received.bytes)
            } else {
                // In an exchange of all ranks with all, a rank that does not run is assumed to send the bytes
                // that this rank sends to itself.
                own.clone().map(|(bytes, _)| (bytes, Certainty::Assumed))
            };
            write(received.address, received.bytes, &part);
        });
    }
}

entries! {
    fn ncclGetVersion(to: Out<c_int>) -> c_int {
        to.put(22_809);
        SUCCESS
    }

    fn ncclGetUniqueId(to: Out<UniqueId>) -> c_int {
        to.put(UniqueId::new());
        SUCCESS
    }

    fn ncclCommInitRank(to: Out<usize>, ranks: c_int, id: UniqueId, rank: c_int) -> c_int {
        create(to, ranks, id, rank)
    }

    fn ncclCommInitRankConfig(to: Out<usize>, ranks: c_int, id: UniqueId, rank: c_int, _config: usize) -> c_int {
        create(to, ranks, id, rank)
    }

    fn ncclCommInitRankScalable(to: Out<usize>, ranks: c_int, rank: c_int, _count: c_int, ids: In<UniqueId>, _config: usize) -> c_int {
        create(to, ranks, ids.get().unwrap_or_else(UniqueId::new), rank)
    }

    fn ncclCommInitAll(to: Out<usize>, count: c_int, devices: In<c_int>) -> c_int {
        // One process holds all ranks of the group, and none waits for another. Without a list, each rank has
        // the device of its number.
        for (rank, place) in (0..count.max(0)).zip(0_usize..) {
            let group = Communicator::alone(unsigned(count), unsigned(rank));
            non_pytorch::follow_on(devices.at(place).unwrap_or(rank), NonPytorchUse::Communicator { ranks: unsigned(count) });
            to.put_at(place, communicators().add(group));
        }
        SUCCESS
    }

    fn ncclCommSplit(parent: usize, color: c_int, key: c_int, to: Out<usize>, _config: usize) -> c_int {
        let mut part = None;
        let known = with(parent, |group| part = Some(group.split(color, key)));
        let part = part.filter(|_| color != NO_COLOR);
        if let Some(part) = &part {
            non_pytorch::follow(NonPytorchUse::Communicator { ranks: part.ranks.unwrap_or(0) });
        }
        to.put(part.map_or(0, |part| communicators().add(part)));
        known
    }

    fn ncclCommCount(handle: usize, to: Out<c_int>) -> c_int {
        with(handle, |group| _ = to.put(group.ranks.and_then(|ranks| c_int::try_from(ranks).ok()).unwrap_or(1)))
    }

    fn ncclCommUserRank(handle: usize, to: Out<c_int>) -> c_int {
        with(handle, |group| _ = to.put(c_int::try_from(group.rank).unwrap_or(0)))
    }

    fn ncclCommGetAsyncError(_handle: usize, to: Out<c_int>) -> c_int {
        to.put(SUCCESS);
        SUCCESS
    }

    fn ncclCommDestroy(handle: usize) -> c_int {
        remove(handle)
    }

    fn ncclCommFinalize(_handle: usize) -> c_int {
        watchdog::hurry();
        SUCCESS
    }

    fn ncclCommAbort(handle: usize) -> c_int {
        remove(handle)
    }

    fn ncclCommRegister(_handle: usize, _address: u64, _size: u64, to: Out<usize>) -> c_int {
        to.put(1);
        SUCCESS
    }

    fn ncclCommWindowRegister(_handle: usize, _address: u64, _size: u64, to: Out<usize>, _flags: c_int) -> c_int {
        to.put(1);
        SUCCESS
    }

    fn ncclRedOpCreatePreMulSum(to: Out<c_int>, _scalar: usize, _kind: c_int, _where: c_int, _handle: usize) -> c_int {
        to.put(5);
        SUCCESS
    }

    fn ncclMemAlloc(to: Out<u64>, size: u64) -> c_int {
        allocate(to, size)
    }

    fn ncclMemFree(address: u64) -> c_int {
        release(address)
    }

    fn ncclGetErrorString(_error: c_int) -> *const c_char {
        text(c"an error of NCCL")
    }

    fn ncclGetLastError(_handle: usize) -> *const c_char {
        text(c"")
    }

    fn ncclGroupSimulateEnd(_info: usize) -> c_longlong {
        0
    }

    fn ncclGroupStart() -> c_int {
        CALLS.with_borrow_mut(|(depth, _)| *depth += 1);
        SUCCESS
    }

    fn ncclGroupEnd() -> c_int {
        let depth = CALLS.with_borrow_mut(|(depth, _)| {
            *depth = depth.saturating_sub(1);
            *depth
        });
        if depth == 0 {
            deliver();
        }
        SUCCESS
    }

    fn ncclAllGather(from: u64, to: u64, count: u64, kind: c_int, handle: usize, _stream: usize) -> c_int {
        collective(handle, |group| all_gather(from, to, bytes_of(count, kind), group))
    }

    fn ncclAllReduce(from: u64, to: u64, count: u64, kind: c_int, operator: c_int, handle: usize, _stream: usize) -> c_int {
        collective(handle, |group| all_reduce(from, to, bytes_of(count, kind), kind, operator, group))
    }

    fn ncclReduceScatter(from: u64, to: u64, count: u64, kind: c_int, operator: c_int, handle: usize, _stream: usize) -> c_int {
        collective(handle, |group| reduce_scatter(from, to, bytes_of(count, kind), kind, operator, group))
    }

    fn ncclReduce(from: u64, to: u64, count: u64, kind: c_int, operator: c_int, root: c_int, handle: usize, _stream: usize) -> c_int {
        collective(handle, |group| {
            let bytes = bytes_of(count, kind);
            if unsigned(root) == group.rank {
                all_reduce(from, to, bytes, kind, operator, group);
            } else {
                group.exchange(&known(from, bytes), bytes);
            }
        })
    }

    fn ncclBroadcast(from: u64, to: u64, count: u64, kind: c_int, root: c_int, handle: usize, _stream: usize) -> c_int {
        collective(handle, |group| broadcast(from, to, bytes_of(count, kind), unsigned(root), group))
    }

    fn ncclBcast(place: u64, count: u64, kind: c_int, root: c_int, handle: usize, _stream: usize) -> c_int {
        collective(handle, |group| broadcast(place, place, bytes_of(count, kind), unsigned(root), group))
    }

    fn ncclAlltoAll(from: u64, to: u64, count: u64, kind: c_int, handle: usize, _stream: usize) -> c_int {
        with(handle, |group| {
            // NCCL sends such an exchange as messages, too.
            note_message(group, true);
            note_message(group, false);
            all_to_all(from, to, bytes_of(count, kind), group);
        })
    }

    fn ncclSend(address: u64, count: u64, kind: c_int, peer: c_int, handle: usize, _stream: usize) -> c_int {
        message(Message { handle, address, bytes: bytes_of(count, kind), peer: unsigned(peer), is_sent: true })
    }

    fn ncclRecv(address: u64, count: u64, kind: c_int, peer: c_int, handle: usize, _stream: usize) -> c_int {
        message(Message { handle, address, bytes: bytes_of(count, kind), peer: unsigned(peer), is_sent: false })
    }
}

setting! { ncclCommDeregister ncclCommWindowDeregister ncclRedOpDestroy }
