//! Runs on a device with real memory that check the data: every block is filled with its own pattern and
//! checked.

use std::fmt;

use blockyard_device::{AnyDevice, DeviceError};
use blockyard_record::{Bytes, DeviceAddr, Recording, SegmentId, StepOutcome, StreamId, index_u32};
use blockyard_workload::{Request, TensorId, Workload};
use serde::{Deserialize, Serialize};

use crate::{RunError, RunSettings, Runner};

/// Memory that can be filled with patterns and checked. All calls add work to a stream, which runs the work
/// in order.
pub trait DataCheck: fmt::Debug {
    /// Fills a block with its pattern.
    ///
    /// # Errors
    ///
    /// The errors that the driver reports.
    fn fill(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError>;

    /// Compares a block with its pattern. When the caller reads the results back from the device, each
    /// mismatch has the `step` of its check.
    ///
    /// # Errors
    ///
    /// The errors that the driver reports.
    fn check(&mut self, stream: StreamId, block: PatternedBlock, step: u32) -> Result<(), DeviceError>;

    /// Submits the work of streams that wait for nothing.
    ///
    /// # Errors
    ///
    /// The errors that the driver reports.
    fn submit_work(&mut self) -> Result<(), DeviceError>;

    /// Completes the work of all streams.
    ///
    /// # Errors
    ///
    /// The errors that the driver reports.
    fn finish(&mut self) -> Result<(), DeviceError>;
}

/// A block and the pattern that fills it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternedBlock {
    /// The address of the first byte.
    pub addr: DeviceAddr,
    /// The size, a multiple of 512 bytes.
    pub size: Bytes,
    /// The pattern. No two blocks of a run have the same pattern.
    pub pattern: u32,
}

/// The blocks that were filled and checked in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDataCheck {
    /// Bytes of the new block that were filled.
    pub filled: Bytes,
    /// How many blocks were checked: the blocks that are freed in the step, and live blocks after the step.
    pub blocks: u32,
    /// Bytes of the checked blocks.
    pub checked: Bytes,
    /// How many words of 4 bytes did not have the pattern.
    pub wrong: u32,
}

/// A run in which every block is filled with its own pattern when it is allocated, and checked before it is
/// freed.
///
/// A block is checked on its own stream and on the other streams that used it. This finds a block that is
/// allocated again before the work of these streams is done.
#[derive(Debug)]
pub struct CheckedRun<'a> {
    runner: Runner<'a, AnyDevice>,
    data: Box<dyn DataCheck>,
    workload: &'a Workload,
    live: Vec<Option<LiveBlock>>,
    steps: Vec<StepDataCheck>,
    blocks: u32,
    /// How many bytes may still be checked in steps that check all live blocks.
    full_check_left: Bytes,
}

/// An allocated block.
#[derive(Debug)]
struct LiveBlock {
    block: PatternedBlock,
    segment: Option<SegmentId>,
    stream: StreamId,
    used_on: Vec<StreamId>,
}

impl<'a> CheckedRun<'a> {
    /// A run before the first request. `data` fills and checks the memory of `device`.
    ///
    /// After each step all live blocks are checked, until `full_check_bytes` bytes have been checked in all.
    /// From then on only the blocks in the segment of a new block are checked, which are all that filling the
    /// new block could damage. After the last step all live blocks are checked again.
    pub fn new(
        device: AnyDevice,
        data: impl DataCheck + 'static,
        full_check_bytes: Bytes,
        settings: &RunSettings,
        workload: &'a Workload,
    ) -> Self {
        Self {
            runner: Runner::new(device, settings, workload),
            data: Box::new(data),
            workload,
            live: Vec::new(),
            steps: Vec::new(),
            blocks: 0,
            full_check_left: full_check_bytes,
        }
    }

    /// Runs the next request; `false` after the last request, when all live blocks have been checked.
    ///
    /// # Errors
    ///
    /// [`RunError::Allocator`] when the device fails for another reason than a lack of memory.
    pub fn step(&mut self) -> Result<bool, RunError> {
        let Some(request) = self.workload.requests().get(self.steps.len()).copied() else {
            self.data.finish()?;
            return Ok(false);
        };
        self.steps.push(StepDataCheck::default());
        if let Request::Free { tensor } = request {
            self.check_before_free(tensor)?;
        }
        let outcome = self.runner.step()?;
        let mut touched = None;
        match (request, outcome) {
            (Request::Allocate { tensor, stream, .. }, Some(StepOutcome::Done)) => {
                touched = self.fill(tensor, stream)?;
            }
            (Request::RecordStream { tensor, stream }, Some(StepOutcome::Done)) => {
                if let Some(Some(live)) = self.live.get_mut(tensor.get() as usize) {
                    live.used_on.push(stream);
                }
            }
            _ => {}
        }
        self.check_live(touched)?;
        self.data.submit_work()?;
        Ok(true)
    }

    /// How many requests are done.
    pub fn steps_done(&self) -> usize {
        self.steps.len()
    }

    /// Adds the result of a check of the step.
    pub fn found(&mut self, step: u32, wrong: u32) {
        if let Some(step) = self.steps.get_mut(step as usize) {
            step.wrong = step.wrong.saturating_add(wrong);
        }
    }

    /// The whole run, and what was filled and checked in each step.
    ///
    /// # Errors
    ///
    /// [`RunError::Recording`] when the run is too long to record.
    pub fn finish(self) -> Result<(Recording, Vec<StepDataCheck>), RunError> {
        let (recording, _) = self.runner.finish()?;
        Ok((recording, self.steps))
    }

    /// Fills the new block and returns its segment.
    fn fill(&mut self, tensor: TensorId, stream: StreamId) -> Result<Option<SegmentId>, DeviceError> {
        // A request of zero bytes has no block.
        let Some(allocated) = self.runner.allocated_block() else { return Ok(None) };
        let segment = self.runner.recorder().state().segment_of(allocated.id);
        self.blocks = self.blocks.wrapping_add(1);
        // Patterns of neighboring numbers differ in many bits.
        let block = PatternedBlock {
            addr: allocated.addr,
            size: allocated.size,
            pattern: self.blocks.wrapping_mul(0x85eb_ca6b),
        };
        self.data.fill(stream, block)?;
        let index = tensor.get() as usize;
        if index >= self.live.len() {
            self.live.resize_with(index + 1, || None);
        }
        self.live[index] = Some(LiveBlock { block, segment, stream, used_on: Vec::new() });
        if let Some(step) = self.steps.last_mut() {
            step.filled = block.size;
        }
        Ok(segment)
    }

    fn check_before_free(&mut self, tensor: TensorId) -> Result<(), DeviceError> {
        let live = self.live.get_mut(tensor.get() as usize).and_then(Option::take);
        let Some(live) = live else { return Ok(()) };
        let step = self.current_step();
        for stream in std::iter::once(live.stream).chain(live.used_on) {
            self.data.check(stream, live.block, step)?;
        }
        self.count(1, live.block.size);
        Ok(())
    }

    /// Checks all live blocks while that is little work and after the last request, and otherwise the live
    /// blocks of the segment.
    fn check_live(&mut self, touched: Option<SegmentId>) -> Result<(), DeviceError> {
        let is_last = self.steps.len() == self.workload.requests().len();
        let takes_all = is_last || !self.full_check_left.is_zero();
        if !takes_all && touched.is_none() {
            return Ok(());
        }
        let step = self.current_step();
        let (mut blocks, mut bytes) = (0_u32, Bytes::ZERO);
        for live in self.live.iter().flatten().filter(|live| takes_all || live.segment == touched) {
            self.data.check(live.stream, live.block, step)?;
            blocks = blocks.saturating_add(1);
            bytes = bytes.saturating_add(live.block.size);
        }
        self.full_check_left = self.full_check_left.saturating_sub(bytes);
        self.count(blocks, bytes);
        Ok(())
    }

    fn count(&mut self, blocks: u32, bytes: Bytes) {
        if let Some(step) = self.steps.last_mut() {
            step.blocks = step.blocks.saturating_add(blocks);
            step.checked = step.checked.saturating_add(bytes);
        }
    }

    fn current_step(&self) -> u32 {
        index_u32(self.steps.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use blockyard_device::VirtualDevice;
    use blockyard_rules::AllocatorConfig;

    use super::*;

    /// A call: `fill` or `check`, its stream, the block.
    type Call = (&'static str, u64, PatternedBlock);

    /// Memory that writes down each call and whether its work was finished.
    #[derive(Debug, Default)]
    struct CallLog {
        calls: Rc<RefCell<Vec<Call>>>,
        finished: Rc<RefCell<u32>>,
    }

    impl DataCheck for CallLog {
        fn fill(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError> {
            self.calls.borrow_mut().push(("fill", stream.get(), block));
            Ok(())
        }

        fn check(&mut self, stream: StreamId, block: PatternedBlock, _: u32) -> Result<(), DeviceError> {
            self.calls.borrow_mut().push(("check", stream.get(), block));
            Ok(())
        }

        fn submit_work(&mut self) -> Result<(), DeviceError> {
            Ok(())
        }

        fn finish(&mut self) -> Result<(), DeviceError> {
            *self.finished.borrow_mut() += 1;
            Ok(())
        }
    }

    /// The calls, and what was checked in each step, where all live blocks are checked for the first `full`
    /// bytes.
    fn checked(text: &str, full: Bytes) -> (Vec<Call>, Vec<StepDataCheck>) {
        let workload = Workload::parse(text).unwrap();
        let settings = RunSettings {
            title: String::new(),
            config: AllocatorConfig::default(),
            capacity: Bytes::mib(256),
        };
        let (calls, finished) = (Rc::default(), Rc::default());
        let data = CallLog { calls: Rc::clone(&calls), finished: Rc::clone(&finished) };
        let device = AnyDevice::new(VirtualDevice::new(settings.capacity));
        let mut run = CheckedRun::new(device, data, full, &settings, &workload);
        while run.step().unwrap() {}
        assert_eq!((run.steps_done(), *finished.borrow()), (workload.requests().len(), 1));
        let (recording, steps) = run.finish().unwrap();
        assert_eq!(recording.step_count(), steps.len());
        let calls = calls.borrow().clone();
        (calls, steps)
    }

    #[test]
    fn a_block_is_filled_on_its_stream_and_checked_on_each_stream_that_used_it_before_it_is_freed() {
        let (calls, steps) =
            checked("stream side; a = alloc 3 MiB; record_stream a side; free a", Bytes::ZERO);
        let named: Vec<_> = calls.iter().map(|(call, stream, _)| (*call, *stream)).collect();
        // After its step, and then before its free on both streams.
        assert_eq!(named, [("fill", 0), ("check", 0), ("check", 0), ("check", 1)]);
        assert_eq!(steps[0].filled, Bytes::mib(3));
        assert_eq!((steps[2].blocks, steps[2].checked), (1, Bytes::mib(3)));
    }

    #[test]
    fn no_two_blocks_have_the_same_pattern() {
        let (calls, _) = checked("repeat 100 { a = alloc 1 KiB; free a }", Bytes::ZERO);
        let filled = calls.iter().filter(|(call, ..)| *call == "fill");
        let mut patterns: Vec<u32> = filled.map(|(_, _, block)| block.pattern).collect();
        patterns.sort_unstable();
        patterns.dedup();
        assert_eq!(patterns.len(), 100);
    }

    #[test]
    fn all_live_blocks_are_checked_for_some_bytes_and_then_those_of_the_new_block_s_segment() {
        // `a` and `b` share a segment of 20 MiB, `c` has its own.
        let text = "a = alloc 3 MiB; b = alloc 3 MiB; c = alloc 30 MiB; d = alloc 3 MiB; advance; free c";
        let blocks = |full| checked(text, full).1.iter().map(|step| step.blocks).collect::<Vec<_>>();
        assert_eq!(blocks(Bytes::gib(1)), [1, 2, 3, 4, 4, 1 + 3]);
        assert_eq!(blocks(Bytes::ZERO), [1, 2, 1, 3, 0, 1 + 3], "all of them after the last step, too");
        // 3 MiB and then 6 MiB have been checked after the second step.
        assert_eq!(blocks(Bytes::mib(9)), [1, 2, 1, 3, 0, 1 + 3]);
        assert_eq!(blocks(Bytes::mib(10)), [1, 2, 3, 3, 0, 1 + 3]);
    }

    #[test]
    fn a_request_without_memory_has_no_block() {
        let (calls, steps) = checked("a = alloc 0; b = alloc 1 GiB; free a; free b", Bytes::gib(1));
        assert_eq!((calls.len(), steps.len()), (0, 4));
        assert!(steps.iter().all(|step| *step == StepDataCheck::default()));
    }

    #[test]
    fn wrong_words_are_added_to_their_step() {
        let workload = Workload::parse("a = alloc 1 MiB").unwrap();
        let settings = RunSettings {
            title: String::new(),
            config: AllocatorConfig::default(),
            capacity: Bytes::mib(64),
        };
        let device = AnyDevice::new(VirtualDevice::new(settings.capacity));
        let mut run = CheckedRun::new(device, CallLog::default(), Bytes::ZERO, &settings, &workload);
        while run.step().unwrap() {}
        run.found(0, 3);
        run.found(0, u32::MAX);
        run.found(9, 1);
        assert_eq!(run.finish().unwrap().1[0].wrong, u32::MAX);
    }
}
