//! NCCL: nobody else is there. Every rank is taken to have what this one has, and what is received is unknown.
#![expect(unsafe_code, reason = "functions are exported under NCCL's names")]

use std::ffi::{c_char, c_int, c_longlong};
use std::sync::{Mutex, PoisonError};

use crate::abi::{In, Out, text};
use crate::handles::Handles;
use crate::runtime::errors::{INVALID_HANDLE, SUCCESS};
use crate::runtime::memory::{allocate, release};

/// What one rank knows of its group.
#[derive(Clone, Copy, Debug)]
struct Communicator {
    ranks: c_int,
    rank: c_int,
}

static COMMUNICATORS: Mutex<Handles<Communicator>> = Mutex::new(Handles::above(0x5000_0000));

/// `ncclUniqueId`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct UniqueId([u8; 128]);

fn create(to: Out<usize>, ranks: c_int, rank: c_int) -> c_int {
    to.put(COMMUNICATORS.lock().unwrap_or_else(PoisonError::into_inner).add(Communicator { ranks, rank }));
    SUCCESS
}

fn with(handle: usize, act: impl FnOnce(Communicator)) -> c_int {
    let found = COMMUNICATORS.lock().unwrap_or_else(PoisonError::into_inner).get(handle).copied();
    found.map_or(INVALID_HANDLE, |communicator| {
        act(communicator);
        SUCCESS
    })
}

fn remove(handle: usize) -> c_int {
    let removed = COMMUNICATORS.lock().unwrap_or_else(PoisonError::into_inner).remove(handle);
    if removed.is_some() { SUCCESS } else { INVALID_HANDLE }
}

entries! {
    fn ncclGetVersion(to: Out<c_int>) -> c_int {
        to.put(22_809);
        SUCCESS
    }

    fn ncclGetUniqueId(to: Out<UniqueId>) -> c_int {
        to.put(UniqueId([1; 128]));
        SUCCESS
    }

    fn ncclCommInitRank(to: Out<usize>, ranks: c_int, _id: UniqueId, rank: c_int) -> c_int {
        create(to, ranks, rank)
    }

    fn ncclCommInitRankConfig(to: Out<usize>, ranks: c_int, _id: UniqueId, rank: c_int, _config: usize) -> c_int {
        create(to, ranks, rank)
    }

    fn ncclCommInitRankScalable(to: Out<usize>, ranks: c_int, rank: c_int, _count: c_int, _ids: usize, _config: usize) -> c_int {
        create(to, ranks, rank)
    }

    fn ncclCommInitAll(to: Out<usize>, count: c_int, _devices: In<c_int>) -> c_int {
        for rank in 0..count.max(0) {
            let mut communicators = COMMUNICATORS.lock().unwrap_or_else(PoisonError::into_inner);
            let handle = communicators.add(Communicator { ranks: count, rank });
            to.put_at(usize::try_from(rank).unwrap_or(0), handle);
        }
        SUCCESS
    }

    fn ncclCommSplit(parent: usize, _color: c_int, _key: c_int, to: Out<usize>, _config: usize) -> c_int {
        crate::report::estimate("a group of NCCL was split, and each part is taken to be as large as the whole");
        let mut found = None;
        let known = with(parent, |communicator| found = Some(communicator));
        if let Some(communicator) = found {
            create(to, communicator.ranks, communicator.rank);
        }
        known
    }

    fn ncclCommCount(handle: usize, to: Out<c_int>) -> c_int {
        with(handle, |communicator| _ = to.put(communicator.ranks))
    }

    fn ncclCommUserRank(handle: usize, to: Out<c_int>) -> c_int {
        with(handle, |communicator| _ = to.put(communicator.rank))
    }

    fn ncclCommGetAsyncError(_handle: usize, to: Out<c_int>) -> c_int {
        to.put(SUCCESS);
        SUCCESS
    }

    fn ncclCommDestroy(handle: usize) -> c_int {
        remove(handle)
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
}

setting! { ncclGroupStart ncclGroupEnd ncclCommFinalize ncclCommDeregister ncclCommWindowDeregister ncclRedOpDestroy }

computing! {
    ncclAllGather ncclAllReduce ncclAlltoAll ncclBcast ncclBroadcast ncclReduce ncclReduceScatter ncclSend ncclRecv
}
