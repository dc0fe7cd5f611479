//! Passes that wait for their submission, and counts that wait to be read.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use blockyard_device::DeviceError;

use crate::device::WgpuDevice;

/// One dispatch over one window of a segment.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) window: wgpu::Buffer,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// The index of the window's first word in the filled or checked range; it wraps.
    pub(crate) first_word: u32,
    pub(crate) pattern: u32,
    /// Which check of this submission it counts for; `None` for a fill.
    pub(crate) check: Option<u32>,
}

/// What is to be submitted and what is to be read.
#[derive(Debug, Default)]
pub(crate) struct Work {
    passes: Vec<Pass>,
    checks: u32,
    submitted: u64,
    unread: Vec<wgpu::Buffer>,
}

/// So many passes are submitted together: often enough to keep the adapter busy, rarely enough to cost little.
const MOST_PASSES: usize = 256;

impl Work {
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted
    }

    /// A number for the next check of this submission.
    pub(crate) fn next_check(&mut self) -> u32 {
        self.checks += 1;
        self.checks - 1
    }

    /// Plans a pass; `true` when it is time to submit.
    pub(crate) fn plan(&mut self, pass: Pass) {
        self.passes.push(pass);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.passes.len() >= MOST_PASSES
    }
}

impl WgpuDevice {
    /// Hands all planned passes to the queue.
    pub(crate) fn submit(&mut self) -> Result<(), DeviceError> {
        let passes = std::mem::take(&mut self.work.passes);
        let checks = std::mem::take(&mut self.work.checks);
        if passes.is_empty() {
            return Ok(());
        }
        let counts = self.gpu.passes.submit(&self.gpu.device, &self.gpu.queue, &passes, checks);
        self.work.submitted += 1;
        if checks > 0 {
            self.work.unread.push(counts);
        }
        self.gpu.health.check()
    }

    /// How many words were found wrong, for each [`WgpuDevice::check`] since the last call, in order.
    ///
    /// Natively it blocks until the adapter has counted; in a browser the await takes that long.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`] where the adapter stopped working, [`DeviceError::Driver`] where it cannot be read.
    pub async fn mismatches(&mut self) -> Result<Vec<u32>, DeviceError> {
        self.submit()?;
        let mut mapped = Vec::new();
        for buffer in std::mem::take(&mut self.work.unread) {
            let answer = Answer::default();
            let given = answer.clone();
            buffer.map_async(wgpu::MapMode::Read, .., move |result| given.give(result));
            mapped.push((buffer, answer));
        }
        #[cfg(not(target_arch = "wasm32"))]
        let _ = self.gpu.device.poll(wgpu::PollType::wait_indefinitely());
        let mut counts = Vec::new();
        for (buffer, answer) in mapped {
            let read = answer.get().await.map_err(failed).and_then(|()| {
                let bytes = buffer.get_mapped_range(..).map_err(failed)?;
                counts.extend(
                    bytes
                        .chunks_exact(4)
                        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])),
                );
                Ok(())
            });
            buffer.destroy();
            // Why an adapter is lost says more than that it cannot be read.
            self.gpu.health.check()?;
            read?;
        }
        self.gpu.health.check()?;
        Ok(counts)
    }

    /// As [`WgpuDevice::mismatches`], for those who may block.
    ///
    /// # Errors
    ///
    /// As [`WgpuDevice::mismatches`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn mismatches_now(&mut self) -> Result<Vec<u32>, DeviceError> {
        now(self.mismatches())
            .unwrap_or_else(|| Err(DeviceError::Lost { message: "the adapter does not answer".to_owned() }))
    }
}

fn failed(source: impl std::error::Error + Send + Sync + 'static) -> DeviceError {
    DeviceError::Driver { operation: "reading back", source: Box::new(source) }
}

/// What `future` comes to, if it does so at once.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

type Mapped = Result<(), wgpu::BufferAsyncError>;

/// The answer to one request, given once.
#[derive(Clone, Default)]
struct Answer(Arc<Mutex<(Option<Mapped>, Option<Waker>)>>);

impl Answer {
    fn give(&self, mapped: Mapped) {
        let waker = {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            slot.0 = Some(mapped);
            slot.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn get(self) -> Mapped {
        std::future::poll_fn(|context| {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match slot.0.take() {
                Some(mapped) => Poll::Ready(mapped),
                None => {
                    slot.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
