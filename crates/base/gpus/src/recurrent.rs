//! The memory that cuDNN 9.19 takes for recurrent layers beside the operands: workspaces and reserves.
//!
//! The pieces of a workspace were found from the sizes of 4,900 layers on an H100 and an H200. Of 5,000
//! further layers on an H200, these pieces gave all 3,355 reserves and 8,346 of 8,355 workspaces; nine small
//! layers differed by 32 bytes, after which one piece was divided. Persistent layers of few time steps take
//! other bytes, which six of 5,175 recorded calls showed; 900 further layers of this sort proved the term.
//! The formulas now give the bytes of all these layers, a part of which is in `tests/fixtures/workspaces`.

use crate::layers::times;
use crate::tables::dtype;
use crate::{Architecture, GpuProfile};

/// The kind of a recurrent layer, with cuDNN's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// An RNN with `relu`.
    Relu = 0,
    /// An RNN with `tanh`.
    #[default]
    Tanh = 1,
    /// An LSTM.
    Lstm = 2,
    /// A GRU.
    Gru = 3,
}

/// How cuDNN computes the time steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// A kernel for each time step.
    #[default]
    Standard,
    /// One kernel for all time steps of a small layer, which keeps the weights in registers.
    Small,
    /// One kernel for all time steps of a larger layer in `float16`.
    Persistent,
}

/// A stack of recurrent layers over a batch of sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// The kind of the layers.
    pub kind: Kind,
    /// The width of the input.
    pub input: u64,
    /// The width of the state.
    pub hidden: u64,
    /// How many layers the stack has.
    pub layers: u64,
    /// 1, or 2 where sequences are read from both ends.
    pub directions: u64,
    /// How many sequences the batch has.
    pub batch: u64,
    /// The time steps of the longest sequence.
    pub longest: u64,
    /// The time steps of all sequences together.
    pub time_steps: u64,
    /// Whether the sequences are packed: one time step after the other, without padding.
    pub is_packed: bool,
    /// Whether the stack has dropout between its layers.
    pub has_dropout: bool,
    /// Whether a backward pass follows.
    pub is_training: bool,
    /// The number of the elements' type: see [`dtype`].
    pub dtype: i64,
    /// Bytes of an element.
    pub element_bytes: u64,
}

/// A number of bytes, and whether it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The bytes, exact or an estimate.
    pub bytes: u64,
    /// False where no layer of this sort was recorded: the bytes are an estimate then.
    pub is_exact: bool,
}

/// Bytes that each layer takes in each direction.
const FOR_MATRICES: u64 = 8 << 20;
/// The most time steps whose gates are computed at once.
const MAX_STEPS: u64 = 256;
/// Bytes that the backward pass of a persistent layer takes at least.
const FOR_EACH_UNIT: u64 = 4864;
/// The most layers of a stack that were recorded.
const MAX_LAYERS: u64 = 6;

fn sum(parts: &[u64]) -> u64 {
    parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part))
}

/// Pieces begin at multiples of 32 bytes.
fn piece(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(32).unwrap_or(u64::MAX)
}

impl Layer {
    /// The algorithm that PyTorch asks cuDNN for in a forward or backward pass: `use_rnn_persist_small_h`,
    /// and for `float16` `use_persist_common_heuristics` and `use_persist_device_heuristics`.
    pub fn algorithm(&self, is_forward: bool, gpu: &GpuProfile) -> Algorithm {
        let is_plain = matches!(self.kind, Kind::Relu | Kind::Tanh);
        let most_hidden = match (is_plain, is_forward) {
            (true, true) => 384,
            (true, false) => 256,
            (false, true) => 192,
            (false, false) => 128,
        };
        let is_small = matches!(self.dtype, dtype::F16 | dtype::F32) && self.hidden <= most_hidden;
        let is_even = |size: u64, unit: u64| size.is_multiple_of(unit);
        let is_one = self.layers == 1 && self.directions == 1 && self.hidden <= 1024;
        let is_wide = is_even(self.hidden, 128) && is_even(self.input, 128) && is_even(self.batch, 8);
        let is_fast = match self.kind {
            Kind::Gru => false,
            Kind::Lstm => true,
            Kind::Relu | Kind::Tanh => self.batch < 96 || self.hidden < 896,
        };
        let has_kernels = match gpu.architecture {
            Architecture::Turing => false,
            Architecture::Ampere | Architecture::Ada | Architecture::Hopper => gpu.multiprocessors >= 98,
        };
        let is_half = self.dtype == dtype::F16 && self.batch <= 128 && has_kernels;
        if self.is_packed {
            Algorithm::Standard
        } else if is_small {
            Algorithm::Small
        } else if is_half && is_one && is_wide && is_fast {
            Algorithm::Persistent
        } else {
            Algorithm::Standard
        }
    }

    /// The reserve: the memory in which the forward pass keeps values for the backward pass.
    pub fn reserve(&self) -> Size {
        let all = self.directions.saturating_mul(self.layers);
        let kept = match self.kind {
            Kind::Lstm => self.states(times(&[4, all])).saturating_add(self.states(all)),
            Kind::Gru => self.states(times(&[6, all])),
            Kind::Relu | Kind::Tanh => self.states(all),
        };
        let between = self.layers.saturating_sub(1).saturating_mul(self.directions);
        // A bit for each value between two layers, padding too.
        let bits = times(&[self.longest, self.batch, self.hidden, self.directions]).div_ceil(8);
        let masks = if self.has_dropout { between.saturating_mul(piece(bits)) } else { 0 };
        self.size(sum(&[256, kept, self.states(between), masks]))
    }

    /// The workspace of a pass. A forward pass in training gets as much as the backward pass.
    pub fn workspace(&self, algorithm: Algorithm) -> Size {
        let forward = self.copies().saturating_add(self.forward(algorithm));
        let buffers = if self.is_training {
            // Values and their gradients.
            forward.max(self.copies().saturating_mul(2).saturating_add(self.backward(algorithm)))
        } else {
            forward
        };
        // The workspace has the lengths of the sequences twice.
        let lengths = if self.is_packed { 0 } else { piece(self.batch.saturating_mul(8)) };
        let of_matrices = times(&[FOR_MATRICES, self.layers, self.directions]);
        self.size(sum(&[256, of_matrices, self.piece(&[self.weights()]), lengths, buffers]))
    }

    fn size(&self, bytes: u64) -> Size {
        let is_recorded = matches!(self.dtype, dtype::F16 | dtype::BF16 | dtype::F32 | dtype::F64);
        Size { bytes, is_exact: is_recorded && self.layers <= MAX_LAYERS }
    }

    fn gates(&self) -> u64 {
        match self.kind {
            Kind::Lstm => 4,
            Kind::Gru => 3,
            Kind::Relu | Kind::Tanh => 1,
        }
    }

    /// Elements of all matrices.
    fn weights(&self) -> u64 {
        let of_input = times(&[self.hidden, self.input, self.directions]);
        let above =
            times(&[self.layers.saturating_sub(1), self.directions, self.directions.saturating_add(1)]);
        let of_states = times(&[self.hidden, self.hidden, above.saturating_add(self.directions)]);
        self.gates().saturating_mul(of_input.saturating_add(of_states))
    }

    fn has_two_directions(&self) -> bool {
        self.directions > 1
    }

    /// A piece of as many numbers as the product of the factors.
    fn piece(&self, factors: &[u64]) -> u64 {
        piece(times(factors).saturating_mul(self.element_bytes))
    }

    /// A piece with `count` numbers for each unit of the state and each time step.
    fn states(&self, count: u64) -> u64 {
        self.piece(&[count, self.time_steps, self.hidden])
    }

    /// A piece with `count` numbers for each unit of the state, each layer and each sequence.
    fn starts(&self, count: u64) -> u64 {
        self.piece(&[count, self.batch, self.hidden, self.layers])
    }

    /// Bytes of copies without padding: of the input, the output, and the states before and after the
    /// sequences.
    fn copies(&self) -> u64 {
        if self.is_packed {
            return 0;
        }
        let states = if self.kind == Kind::Lstm { 4 } else { 2 };
        let at_ends = self.starts(self.directions).saturating_mul(states);
        sum(&[self.piece(&[self.time_steps, self.input]), self.states(self.directions), at_ends])
    }

    /// Buffers of the forward pass.
    fn forward(&self, algorithm: Algorithm) -> u64 {
        let (gates, directions) = (self.gates(), self.directions);
        let own = match algorithm {
            Algorithm::Standard => {
                let at_once = MAX_STEPS.saturating_mul(self.batch);
                let rows =
                    if self.has_two_directions() { self.time_steps } else { self.time_steps.min(at_once) };
                let values = self.piece(&[gates, directions, rows, self.hidden]);
                let of_sequences = match self.kind {
                    Kind::Lstm => self
                        .starts(directions.saturating_mul(4))
                        .saturating_add(self.starts(directions.saturating_mul(2))),
                    Kind::Gru => self.starts(directions.saturating_mul(3)),
                    Kind::Relu | Kind::Tanh => self.starts(directions),
                };
                let of_both = if self.has_two_directions() { self.starts(4) } else { 0 };
                sum(&[values, of_sequences, of_both])
            }
            Algorithm::Small | Algorithm::Persistent => {
                let values =
                    self.states(4 * gates).saturating_add(self.states(gates.saturating_mul(directions)));
                values.saturating_add(self.starts_in_registers())
            }
        };
        let of_both = if self.has_two_directions() { self.states(4) } else { 0 };
        let drops = self.is_training && self.has_dropout && !self.has_two_directions();
        sum(&[own, of_both, if drops { self.states(1) } else { 0 }])
    }

    /// Buffers of the backward pass.
    fn backward(&self, algorithm: Algorithm) -> u64 {
        let directions = self.directions;
        let is_deep = u64::from(self.layers > 1);
        let wide = self.piece(&[directions, directions, self.time_steps, self.input.max(self.hidden)]);
        let own = match algorithm {
            Algorithm::Standard => {
                let between = if self.has_two_directions() {
                    self.states(2 + 2 * is_deep).saturating_add(self.starts(4))
                } else {
                    // Layers that follow each other share the states of as many steps.
                    let rows = self.steps_at_once().saturating_mul(self.batch).min(self.time_steps);
                    self.piece(&[rows, self.hidden])
                };
                let cells =
                    if self.kind == Kind::Lstm { self.starts(directions.saturating_mul(2)) } else { 0 };
                sum(&[between, cells, self.starts(directions)])
            }
            Algorithm::Small => self.backward_in_registers(),
            Algorithm::Persistent => {
                let (states, starts) = if self.kind == Kind::Lstm { (5, 5) } else { (2, 3) };
                let of_weights = FOR_EACH_UNIT.saturating_mul(self.hidden);
                let of_few_steps = sum(&[self.states(states), self.starts(starts), of_weights]);
                self.backward_in_registers().max(of_few_steps)
            }
        };
        wide.saturating_add(own)
    }

    fn backward_in_registers(&self) -> u64 {
        let values = match self.kind {
            Kind::Lstm => 4,
            Kind::Gru => 6,
            Kind::Relu | Kind::Tanh => 1,
        };
        let is_deep = u64::from(self.layers > 1);
        let between = self.states(self.directions.saturating_mul(1 + is_deep));
        sum(&[self.states(8), self.states(values), between, self.starts_in_registers()])
    }

    /// Bytes that a kernel for all time steps takes for each sequence.
    fn starts_in_registers(&self) -> u64 {
        let states = if self.kind == Kind::Lstm { 2 } else { 1 };
        let of_both = if self.has_two_directions() { self.starts(2) } else { 0 };
        self.starts(self.directions.saturating_mul(2)).saturating_mul(states).saturating_add(of_both)
    }

    /// How many time steps go through all layers at once.
    fn steps_at_once(&self) -> u64 {
        if self.layers == 1 {
            return self.longest;
        }
        let steps: u64 = match (self.batch, self.longest) {
            (..=1, _) => 32,
            (2..=8, _) => 16,
            (9..=16, _) | (_, 128..) => 8,
            (17..=96, _) => 4,
            _ => 2,
        };
        steps.saturating_mul(self.layers).saturating_add(steps.max(8)).min(self.longest)
    }
}

#[cfg(test)]
mod tests;
