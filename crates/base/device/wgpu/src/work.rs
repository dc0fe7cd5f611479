//! Passes that wait for their submission, and checks that wait to be read.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use blockyard_device::DeviceError;
use blockyard_record::{Bytes, DeviceAddr};

use crate::device::WgpuDevice;

/// A range of memory that should hold a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternRange {
    /// The address of the first byte.
    pub addr: DeviceAddr,
    /// The size of the range in bytes.
    pub size: Bytes,
    /// The pattern: word `i` of the range is `pattern + 0x9e3779b1 * i`, wrapping.
    pub pattern: u32,
}

/// A range that did not hold its pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WgpuMismatch {
    /// The range that was checked.
    pub range: PatternRange,
    /// The caller's tag of the check.
    pub tag: u32,
    /// How many words of 4 bytes differ.
    pub wrong: u32,
    /// The address of one of the wrong words.
    pub at: DeviceAddr,
    /// The word in memory at `at`.
    pub found: u32,
}

/// One dispatch over one window of a segment.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) window: wgpu::Buffer,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// The index of the window's first word in the filled or checked range; it wraps.
    pub(crate) first_word: u32,
    pub(crate) pattern: u32,
    /// The number of the check, in this submission, that the pass is part of; `None` for a fill.
    pub(crate) check: Option<u32>,
}

/// The passes to be submitted, and the results to be read.
#[derive(Debug, Default)]
pub(crate) struct PendingWork {
    passes: Vec<Pass>,
    checks: Vec<(PatternRange, u32)>,
    submitted: u64,
    unread: Vec<(wgpu::Buffer, Vec<(PatternRange, u32)>)>,
}

/// How many passes are submitted together: few enough to keep the adapter busy, enough that submissions cost
/// little.
const MAX_PASSES: usize = 256;

impl PendingWork {
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted
    }

    /// Adds a check and returns its number in this submission, from 0 on; `None` beyond 2^32 checks.
    pub(crate) fn add_check(&mut self, range: PatternRange, tag: u32) -> Option<u32> {
        self.checks.push((range, tag));
        u32::try_from(self.checks.len() - 1).ok()
    }

    pub(crate) fn plan(&mut self, pass: Pass) {
        self.passes.push(pass);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.passes.len() >= MAX_PASSES
    }
}

impl WgpuDevice {
    /// Submits all planned passes to the queue.
    pub(crate) fn submit(&mut self) -> Result<(), DeviceError> {
        let passes = std::mem::take(&mut self.work.passes);
        let checks = std::mem::take(&mut self.work.checks);
        if passes.is_empty() {
            return Ok(());
        }
        let found = self.gpu.passes.submit(&self.gpu.device, &self.gpu.queue, &passes, checks.len());
        self.work.submitted += 1;
        if !checks.is_empty() {
            self.work.unread.push((found, checks));
        }
        self.gpu.health.check()
    }

    /// The checks since the last call that found another content than their pattern, in the order of the
    /// checks.
    ///
    /// Natively the call blocks until the adapter has compared; in a browser the await takes until then.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`] if the adapter stopped working, [`DeviceError::Driver`] if its buffers cannot be
    /// read.
    pub async fn mismatches(&mut self) -> Result<Vec<WgpuMismatch>, DeviceError> {
        self.submit()?;
        let mut asked = Vec::new();
        for (buffer, checks) in std::mem::take(&mut self.work.unread) {
            let answer = MapResult::default();
            let given = answer.clone();
            buffer.map_async(wgpu::MapMode::Read, .., move |result| given.give(result));
            asked.push((buffer, checks, answer));
        }
        #[cfg(not(target_arch = "wasm32"))]
        let _ = self.gpu.device.poll(wgpu::PollType::wait_indefinitely());
        let mut mismatches = Vec::new();
        for (buffer, checks, answer) in asked {
            let mapped = answer.get().await;
            // The reason for the loss of an adapter says more than the error of reading a buffer.
            self.gpu.health.check()?;
            mapped.map_err(failed)?;
            read(&buffer, &checks, &mut mismatches)?;
            buffer.destroy();
        }
        self.gpu.health.check()?;
        Ok(mismatches)
    }

    /// [`WgpuDevice::mismatches`] for callers that may block.
    ///
    /// # Errors
    ///
    /// The errors of [`WgpuDevice::mismatches`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn mismatches_now(&mut self) -> Result<Vec<WgpuMismatch>, DeviceError> {
        now(self.mismatches())
            .unwrap_or_else(|| Err(DeviceError::Lost { source: "the adapter does not answer".into() }))
    }
}

/// Adds the results of a submission's checks.
fn read(
    buffer: &wgpu::Buffer,
    checks: &[(PatternRange, u32)],
    mismatches: &mut Vec<WgpuMismatch>,
) -> Result<(), DeviceError> {
    let bytes = buffer.get_mapped_range(..).map_err(failed)?;
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|word| word.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)))
        .collect();
    for ((range, tag), found) in checks.iter().zip(words.chunks_exact(3)) {
        let [wrong, index, found] = *found else { continue };
        if wrong > 0 {
            let at = range.addr.offset(Bytes::new(u64::from(index) * 4));
            mismatches.push(WgpuMismatch { range: *range, tag: *tag, wrong, at, found });
        }
    }
    Ok(())
}

fn failed(source: impl std::error::Error + Send + Sync + 'static) -> DeviceError {
    DeviceError::Driver { operation: "reading back", source: Box::new(source) }
}

/// The value of `future`, if it is ready at once.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

type MapOutcome = Result<(), wgpu::BufferAsyncError>;

/// The outcome of one request to map a buffer, which wgpu reports once.
#[derive(Clone, Default)]
struct MapResult(Arc<Mutex<(Option<MapOutcome>, Option<Waker>)>>);

impl MapResult {
    fn give(&self, mapped: MapOutcome) {
        let waker = {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            slot.0 = Some(mapped);
            slot.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn get(self) -> MapOutcome {
        std::future::poll_fn(|context| {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(mapped) = slot.0.take() {
                return Poll::Ready(mapped);
            }
            slot.1 = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
