//! The thread that sends what waits.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::clock::Clock;
use super::{DeviceReader, Mark, MarkKind, WatchState, locked};
use crate::frames::Frame;

/// How many events one frame has at most.
const EVENTS_A_FRAME: usize = 1 << 12;
/// Between two looks at the rings.
const PAUSE: Duration = Duration::from_millis(5);

/// The thread that sends.
pub(super) struct SendingThread {
    pub(super) job: &'static WatchState,
    pub(super) stream: UnixStream,
    pub(super) out: Vec<u8>,
    pub(super) readers: Vec<DeviceReader>,
    pub(super) clock: Clock,
}

impl SendingThread {
    pub(super) fn run(mut self) {
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
        self.clock.set();
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
                    Frame::Snapshot(pickle)
                }
                MarkKind::OutOfMemory { device, size } => Frame::OutOfMemory { device, size },
                MarkKind::Note(text) => Frame::Note(text),
            };
            frame.write(&mut self.out);
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
                Frame::Gap { device, lost: lost - reader.lost }.write(&mut self.out);
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
                    Frame::Stack { device, stack }.write(&mut self.out);
                }
                for event in &mut events {
                    event.time_us = self.clock.micros(event.time_us);
                }
                let frame = Frame::Events { device, events };
                frame.write(&mut self.out);
                self.send()?;
                let Frame::Events { events: used, .. } = frame else { return Ok(()) };
                events = used;
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
