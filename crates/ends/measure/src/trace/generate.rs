//! Traces that follow a rule.

use blockyard_device::Random;
use blockyard_record::next_u32;
use blockyard_workload::{TensorId, TensorSlots};

use super::{Opcode, Operation, OperationList};

/// The most bytes that a random trace may have allocated at a moment: 16 GiB, as in RMM's benchmark.
const MAX_LIVE_BYTES: u64 = 16 << 30;
/// In how many of 100 turns such a list allocates.
const ALLOCATES: u64 = 73;

impl OperationList {
    /// One block that is allocated and freed `pairs` times.
    #[must_use]
    pub fn ping_pong(name: &str, size: u64, pairs: usize) -> Self {
        let pair = [Operation::new(Opcode::Allocate, 0, 0, size), Operation::new(Opcode::Free, 0, 0, 0)];
        Self { name: name.to_owned(), operations: pair.repeat(pairs), slots: 1, streams: 1 }
    }

    /// The rule of RMM's `random_allocations` benchmark: `count` allocations of 1 to `most` bytes, of any
    /// size alike; a turn allocates with 73 %, else it frees any live block; at most 16 GB are live; what is
    /// left is freed at the end.
    #[must_use]
    pub fn random_allocations(name: &str, count: usize, most: u64) -> Self {
        let mut random = Random::new(0x5eed ^ (count as u64) << 32 ^ most);
        let mut slots = TensorSlots::default();
        let mut ops = Vec::with_capacity(2 * count);
        let mut live: Vec<(TensorId, u64)> = Vec::new();
        let (mut held, mut made) = (0, 0_u32);
        for _ in 0..2 * count {
            let size = 1 + random.below(most);
            let allocates = live.is_empty() || random.below(100) < ALLOCATES;
            if (made as usize) < count && held + size < MAX_LIVE_BYTES && allocates {
                let tensor = TensorId::new(next_u32(&mut made));
                ops.push(Operation::new(Opcode::Allocate, slots.allocate(tensor), 0, size));
                live.push((tensor, size));
                held += size;
            } else if !live.is_empty() {
                let (tensor, size) = live.swap_remove(random.index(live.len()));
                ops.extend(slots.free(tensor).map(|slot| Operation::new(Opcode::Free, slot, 0, 0)));
                held -= size;
            }
        }
        let left = live.iter().filter_map(|(tensor, _)| slots.get(*tensor));
        ops.extend(left.map(|slot| Operation::new(Opcode::Free, slot, 0, 0)));
        Self { name: name.to_owned(), operations: ops, slots: slots.count(), streams: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_trace_gives_back_all_that_it_takes() {
        let trace = OperationList::random_allocations("r", 1000, 1 << 20);
        let frees = trace.operations.iter().filter(|op| op.kind == Opcode::Free).count();
        assert_eq!((trace.pairs(), frees), (1000, 1000));
        assert_eq!(trace.most_live().1, trace.slots as usize);
    }

    #[test]
    fn a_random_trace_holds_no_more_than_16_gb() {
        let trace = OperationList::random_allocations("r", 10_000, 1 << 30);
        let mut sizes = vec![0; trace.slots as usize];
        let (mut held, mut most) = (0, 0);
        for op in &trace.operations {
            let place = &mut sizes[op.slot as usize];
            match op.kind {
                Opcode::Allocate => {
                    *place = op.size;
                    held += op.size;
                }
                _ => held -= *place,
            }
            most = most.max(held);
        }
        assert!(most < MAX_LIVE_BYTES && most > MAX_LIVE_BYTES / 2, "{most}");
        assert_eq!(held, 0);
    }
}
