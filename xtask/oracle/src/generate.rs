//! Random sequences, with most values near the thresholds of the allocator.

pub(crate) mod settings;
mod sizes;

use blockyard_allocator::PoolOptions;
use blockyard_record::{Bytes, PoolId, StreamId};
use blockyard_rules::Release;
use fastrand::Rng;

use crate::rules::Rules;
use crate::sequence::{Operation, Sequence};

use settings::Choice;
use sizes::Sizes;

/// The sequence of a seed, for a release of PyTorch.
pub fn sequence(seed: u64, release: Release) -> Sequence {
    let mut rng = Rng::with_seed(seed);
    let choice = settings::choose(&mut rng, release);
    let capacity = capacity(&mut rng);
    if rng.u8(..12) == 0 {
        return settings_only(&mut rng, capacity, release);
    }
    let mut sequence = Sequence { release, capacity, conf: choice.text.clone(), operations: Vec::new() };
    let mut generator = Generator::new(rng, &sequence, choice);
    let count = generator.length();
    while generator.operations.len() < count {
        let operation = generator.next();
        generator.operations.extend(generator.rules.admit(&operation));
    }
    sequence.operations = generator.operations;
    sequence
}

/// A sequence of settings alone, valid and invalid, whose errors or configurations are compared.
fn settings_only(rng: &mut Rng, capacity: Bytes, release: Release) -> Sequence {
    let mut operations = Vec::new();
    for _ in 0..rng.usize(1..40) {
        operations.push(Operation::ApplySettings { text: settings::mangled(rng, release) });
        operations.push(Operation::TellSettings);
    }
    Sequence { release, capacity, conf: String::new(), operations }
}

/// The capacity of the device: mostly too small for the sequence, and sometimes a number that is a multiple
/// of nothing.
fn capacity(rng: &mut Rng) -> Bytes {
    const MIB: [u64; 14] = [24, 40, 64, 80, 100, 128, 200, 256, 512, 1024, 2048, 4096, 8192, 81_920];
    let mib = MIB[rng.usize(..MIB.len())];
    let odd = if rng.u8(..4) == 0 { rng.u64(..4096) * 512 + rng.u64(..2) } else { 0 };
    Bytes::new((mib << 20) + odd)
}

struct Generator {
    rng: Rng,
    rules: Rules,
    operations: Vec<Operation>,
    sizes: Sizes,
    choice: Choice,
    live: Vec<u32>,
    tensors: u32,
    streams: u64,
    pools: Vec<PoolId>,
    open: Vec<PoolId>,
    has_pools: bool,
    /// The chance of an allocation, in a thousand operations.
    allocates: u32,
    /// Which tensors are freed first: the newest, the oldest, or any.
    order: Order,
}

#[derive(Clone, Copy)]
enum Order {
    Newest,
    Oldest,
    Any,
}

impl Generator {
    fn new(mut rng: Rng, sequence: &Sequence, choice: Choice) -> Self {
        let sizes = Sizes::new(&mut rng, sequence.capacity, &choice);
        // Half of the sequences have one stream, as most programs.
        let streams = if rng.bool() { 1 } else { rng.u64(2..=4) };
        let has_pools = rng.u8(..3) == 0;
        Self {
            rules: Rules::new(sequence),
            operations: Vec::new(),
            sizes,
            choice,
            live: Vec::new(),
            tensors: 0,
            streams,
            pools: Vec::new(),
            open: Vec::new(),
            has_pools,
            allocates: 550,
            order: Order::Any,
            rng,
        }
    }

    /// The number of operations. Short sequences test a fresh allocator; long sequences fragment its memory.
    fn length(&mut self) -> usize {
        match self.rng.u8(..10) {
            0 => self.rng.usize(5..60),
            1..=6 => self.rng.usize(200..1200),
            _ => self.rng.usize(1200..4000),
        }
    }

    fn next(&mut self) -> Operation {
        if self.rng.u32(..150) == 0 {
            self.allocates = self.rng.u32(250..700);
            self.order = [Order::Newest, Order::Oldest, Order::Any, Order::Any][self.rng.usize(..4)];
        }
        match self.rng.u32(..1000) {
            roll @ 0..60 if self.streams > 1 => self.stream_operation(roll),
            60..100 if self.has_pools => self.pool_operation(),
            100..106 => Operation::EmptyCache,
            106..108 => Operation::ResetPeak,
            108..110 => Operation::ResetAccumulated,
            110..112 => Operation::Snapshot,
            112..116 if self.choice.limits || self.rng.u8(..8) == 0 => self.set_fraction(),
            116..122 if self.choice.changes => {
                let text = settings::change(&mut self.rng, &self.choice, self.rules.release());
                Operation::ApplySettings { text }
            }
            _ if self.live.is_empty() || self.rng.u32(..1000) < self.allocates => self.allocate(),
            _ => self.free(),
        }
    }

    fn allocate(&mut self) -> Operation {
        let size = self.sizes.next(&mut self.rng);
        let stream = self.stream();
        let tensor = self.tensors;
        self.tensors += 1;
        self.live.push(tensor);
        Operation::Allocate { tensor, size, stream }
    }

    fn free(&mut self) -> Operation {
        let index = match self.order {
            Order::Newest => self.live.len() - 1 - self.rng.usize(..self.live.len().min(4)),
            Order::Oldest => self.rng.usize(..self.live.len().min(4)),
            Order::Any => self.rng.usize(..self.live.len()),
        };
        // A tensor that may not be freed at this point is dropped from the list, and stays allocated as a
        // leak does.
        Operation::Free { tensor: self.live.remove(index) }
    }

    fn stream_operation(&mut self, roll: u32) -> Operation {
        if roll < 38 && !self.live.is_empty() {
            let newest = self.live.len().saturating_sub(8);
            let tensor = self.live[self.rng.usize(newest..self.live.len())];
            return Operation::RecordStream { tensor, stream: self.stream() };
        }
        let stream = (self.rng.u8(..4) > 0).then(|| self.stream());
        Operation::Advance { stream }
    }

    fn pool_operation(&mut self) -> Operation {
        match self.rng.u8(..12) {
            0 | 1 if self.pools.len() < 4 => {
                let number = u32::try_from(self.pools.len()).unwrap_or(0) + 1;
                if self.rng.u8(..4) == 0 {
                    let pool_id = PoolId { capture: number, user: 0 };
                    self.pools.push(pool_id);
                    return self.enter(pool_id);
                }
                let pool_id = PoolId { capture: 0, user: number };
                self.pools.push(pool_id);
                let options =
                    PoolOptions { never_splits: self.rng.u8(..4) == 0, serves_on_oom: self.rng.u8(..3) == 0 };
                Operation::CreatePool { pool_id, options }
            }
            2 if !self.pools.is_empty() => {
                let pool_id = self.pools[self.rng.usize(..self.pools.len())];
                Operation::DestroyPool { pool_id }
            }
            3..=6 if !self.pools.is_empty() => {
                let pool_id = self.pools[self.rng.usize(..self.pools.len())];
                self.enter(pool_id)
            }
            _ => match self.open.pop() {
                Some(pool_id) => Operation::LeavePool { pool_id },
                None => self.allocate(),
            },
        }
    }

    fn enter(&mut self, pool_id: PoolId) -> Operation {
        self.open.push(pool_id);
        let stream = (self.rng.u8(..4) == 0).then(|| self.stream());
        Operation::EnterPool { pool_id, stream }
    }

    fn stream(&mut self) -> StreamId {
        // Most work is on the first stream.
        let stream = if self.rng.bool() { 0 } else { self.rng.u64(..self.streams) };
        StreamId::new(stream)
    }

    fn set_fraction(&mut self) -> Operation {
        let fraction = match self.rng.u8(..8) {
            0 => 1.0,
            1 => self.rng.f64() / 10.0,
            _ => 0.2 + 0.8 * self.rng.f64(),
        };
        Operation::SetFraction { fraction }
    }
}
