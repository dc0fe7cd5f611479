//! Streams, events and captures. All work is done when it is asked for; only a capture puts work off.
#![expect(unsafe_code, reason = "functions are exported under CUDA's names")]

use std::ffi::{c_int, c_uint, c_ulonglong};
use std::time::Instant;

use crate::abi::{Argument, HostFunction, Out, StreamCallback};
use crate::non_pytorch;
use crate::runtime::errors::{INVALID_HANDLE, NOT_READY, SUCCESS, fail};
use crate::runtime::work;
use crate::state::{Event, State, Stream, current_device, state};

/// The handles of the default streams: null, legacy, per thread.
const DEFAULT: usize = 2;

/// The stream of a handle; `None` for a handle that was not given out. All devices share the default streams.
fn of(state: &State, handle: usize) -> Option<Stream> {
    if handle <= DEFAULT {
        return Some(Stream { device: current_device(), flags: 0, priority: 0, capture: 0 });
    }
    state.streams.get(handle).copied()
}

/// Acts with the stream of a handle; returns an error for a handle that was not given out.
fn with(handle: usize, act: impl FnOnce(Stream)) -> c_int {
    let found = of(&state(), handle);
    match found {
        Some(stream) => {
            act(stream);
            SUCCESS
        }
        None => fail(INVALID_HANDLE),
    }
}

fn create(to: Out<usize>, flags: c_uint, priority: c_int) -> c_int {
    to.put(state().streams.add(Stream { device: current_device(), flags, priority, capture: 0 }));
    non_pytorch::follow(non_pytorch::NonPytorchUse::Stream);
    SUCCESS
}

fn create_event(to: Out<usize>) -> c_int {
    to.put(state().events.add(Event::default()));
    SUCCESS
}

fn record(event: usize, stream: usize) -> c_int {
    let mut state = state();
    let Some(Stream { capture, device, .. }) = of(&state, stream) else { return fail(INVALID_HANDLE) };
    match state.events.get_mut(event) {
        Some(event) => {
            *event = Event { capture, at: Some(Instant::now()), device, stream, is_awaited: false };
            SUCCESS
        }
        None => fail(INVALID_HANDLE),
    }
}

/// Answers whether an event's work is done; `caller` is an address in the code that asks.
extern "C" fn query(event: usize, caller: usize) -> c_int {
    crate::report::report_call("cudaEventQuery");
    let found = state().events.get(event).copied();
    match found {
        None => fail(INVALID_HANDLE),
        Some(Event { at: Some(at), .. }) if crate::nccl::is_pending(at) => fail(NOT_READY),
        Some(event) => {
            work::note_event_query(&event, caller);
            SUCCESS
        }
    }
}

/// Calls [`query`] with the address to which this call returns: the address says which library asks.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
extern "C" fn cudaEventQuery(_event: usize) -> c_int {
    std::arch::naked_asm!("mov rsi, [rsp]", "jmp {}", sym query)
}

#[cfg(not(target_arch = "x86_64"))]
#[unsafe(no_mangle)]
extern "C" fn cudaEventQuery(event: usize) -> c_int {
    query(event, 0)
}

entries! {
    fn cudaStreamCreate(to: Out<usize>) -> c_int {
        create(to, 0, 0)
    }

    fn cudaStreamCreateWithFlags(to: Out<usize>, flags: c_uint) -> c_int {
        create(to, flags, 0)
    }

    fn cudaStreamCreateWithPriority(to: Out<usize>, flags: c_uint, priority: c_int) -> c_int {
        create(to, flags, priority)
    }

    fn cudaStreamDestroy(stream: usize) -> c_int {
        let removed = state().streams.remove(stream);
        if removed.is_some() { SUCCESS } else { fail(INVALID_HANDLE) }
    }

    fn cudaStreamGetPriority(stream: usize, to: Out<c_int>) -> c_int {
        with(stream, |stream| _ = to.put(stream.priority))
    }

    fn cudaStreamGetFlags(stream: usize, to: Out<c_uint>) -> c_int {
        with(stream, |stream| _ = to.put(stream.flags))
    }

    fn cudaStreamGetDevice(stream: usize, to: Out<c_int>) -> c_int {
        with(stream, |stream| _ = to.put(stream.device))
    }

    fn cudaStreamQuery(stream: usize) -> c_int {
        work::note_stream_query();
        with(stream, |_| ())
    }

    fn cudaStreamSynchronize(stream: usize) -> c_int {
        with(stream, |found| work::wait(found.device, Some(stream)))
    }

    fn cudaStreamIsCapturing(stream: usize, to: Out<c_int>) -> c_int {
        with(stream, |stream| _ = to.put(c_int::from(stream.capture != 0)))
    }

    // CUDA 13's signature; that of CUDA 12 is `cudaStreamGetCaptureInfo_v2`.
    fn cudaStreamGetCaptureInfo(
        stream: usize,
        status: Out<c_int>,
        id: Out<c_ulonglong>,
        graph: Out<usize>,
        dependencies: Out<usize>,
        edges: Out<usize>,
        count: Out<usize>,
    ) -> c_int {
        edges.put(0);
        cudaStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count)
    }

    fn cudaStreamGetCaptureInfo_v2(
        stream: usize,
        status: Out<c_int>,
        id: Out<c_ulonglong>,
        graph: Out<usize>,
        dependencies: Out<usize>,
        count: Out<usize>,
    ) -> c_int {
        with(stream, |stream| {
            status.put(c_int::from(stream.capture != 0));
            id.put(stream.capture);
            graph.put(usize::try_from(stream.capture).unwrap_or(0));
            dependencies.put(0);
            count.put(0);
        })
    }

    fn cudaStreamBeginCapture(stream: usize, _mode: c_int) -> c_int {
        let mut state = state();
        let capture = state.captures.saturating_add(1);
        match state.streams.get_mut(stream) {
            Some(stream) => stream.capture = capture,
            None => return fail(INVALID_HANDLE),
        }
        state.captures = capture;
        SUCCESS
    }

    fn cudaStreamEndCapture(stream: usize, graph: Out<usize>) -> c_int {
        let mut state = state();
        let Some(capture) = state.streams.get(stream).map(|stream| stream.capture).filter(|capture| *capture != 0) else {
            return fail(INVALID_HANDLE);
        };
        for stream in state.streams.values_mut().filter(|stream| stream.capture == capture) {
            stream.capture = 0;
        }
        graph.put(state.graphs.add(()));
        SUCCESS
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: Out<c_int>) -> c_int {
        thread_local! {
            static MODE: std::cell::Cell<c_int> = const { std::cell::Cell::new(0) };
        }
        if let Some(wanted) = mode.get() {
            mode.put(MODE.replace(wanted));
        }
        SUCCESS
    }

    fn cudaStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) -> c_int {
        let mut state = state();
        let Some(capture) = state.events.get(event).map(|event| event.capture) else { return fail(INVALID_HANDLE) };
        // A stream that waits for an event of a capture takes part in the capture, as long as it goes on.
        let goes_on = capture != 0 && state.streams.values_mut().any(|stream| stream.capture == capture);
        if let Some(stream) = state.streams.get_mut(stream) {
            if goes_on {
                stream.capture = capture;
            }
        } else if stream > DEFAULT {
            return fail(INVALID_HANDLE);
        }
        SUCCESS
    }

    fn cudaEventCreate(to: Out<usize>) -> c_int {
        create_event(to)
    }

    fn cudaEventCreateWithFlags(to: Out<usize>, _flags: c_uint) -> c_int {
        create_event(to)
    }

    fn cudaEventDestroy(event: usize) -> c_int {
        let removed = state().events.remove(event);
        if removed.is_some() { SUCCESS } else { fail(INVALID_HANDLE) }
    }

    fn cudaEventRecord(event: usize, stream: usize) -> c_int {
        record(event, stream)
    }

    fn cudaEventRecordWithFlags(event: usize, stream: usize, _flags: c_uint) -> c_int {
        record(event, stream)
    }

    fn cudaEventSynchronize(event: usize) -> c_int {
        match state().events.get_mut(event) {
            Some(event) => {
                event.is_awaited = true;
                SUCCESS
            }
            None => fail(INVALID_HANDLE),
        }
    }

    fn cudaDeviceSynchronize() -> c_int {
        work::wait(current_device(), None);
        SUCCESS
    }

    fn cudaEventElapsedTime(milliseconds: Out<f32>, _start: usize, _end: usize) -> c_int {
        // No kernel ran, so no time is known. What follows from the time of an engine of cuDNN is reported
        // with the engine.
        if !crate::cudnn::is_trying_engines() {
            crate::report::report_read(&crate::python::place(), 4, "no kernel ran, and the time is assumed to be 1 ms");
        }
        milliseconds.put(1.0);
        SUCCESS
    }

    fn cudaLaunchHostFunc(stream: usize, function: HostFunction, argument: Argument) -> c_int {
        let mut is_captured = false;
        let found = with(stream, |stream| is_captured = stream.capture != 0);
        if found == SUCCESS && !is_captured {
            function.call(argument);
        }
        found
    }

    fn cudaStreamAddCallback(stream: usize, function: StreamCallback, argument: Argument, _flags: c_uint) -> c_int {
        let mut is_captured = false;
        let found = with(stream, |stream| is_captured = stream.capture != 0);
        if found == SUCCESS && !is_captured {
            function.call(stream, argument);
        }
        found
    }
}
