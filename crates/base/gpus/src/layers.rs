//! The workspaces of cuDNN for layers whose workspace follows from the shape: attention, batch norm with
//! channels last, CTC. Recurrent layers are in [`recurrent`](crate::recurrent).
//!
//! The formulas give every size that cuDNN 9.19 answered on an H200: 5,431 backward and 9,245 forward passes
//! of attention, 34,000 passes of batch norm, 280 of CTC.

/// Attention as cuDNN is asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// How many sequences the batch has.
    pub batch: u64,
    /// How many heads the queries have.
    pub heads: u64,
    /// Heads of keys and values; fewer than those of the queries where several queries share them.
    pub key_heads: u64,
    /// How many queries a sequence has.
    pub queries: u64,
    /// How many keys a sequence has.
    pub keys: u64,
    /// How many elements a query has.
    pub width: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
}

/// Parts of a workspace begin at multiples of 128 bytes.
fn part(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(128).unwrap_or(u64::MAX)
}

/// The product, or the most that the type holds.
pub(crate) fn times(factors: &[u64]) -> u64 {
    factors.iter().fold(1_u64, |product, factor| product.saturating_mul(*factor))
}

/// The attention of a single query is divided into parts. The largest number of parts follows from this
/// number of keys in each part.
const KEYS_OF_PART: u64 = 254;
/// Up to this number of keys, the attention of a single query is one part.
const MAX_KEYS: u64 = 512;

impl Attention {
    /// How many parts the keys of a single query are divided into, so that a device with this many
    /// multiprocessors is busy.
    fn parts(&self, multiprocessors: u64) -> u64 {
        let pairs = self.batch.saturating_mul(self.key_heads);
        if self.keys <= MAX_KEYS || pairs == 0 || pairs.saturating_mul(2) > multiprocessors {
            return 1;
        }
        let wanted = self.keys.div_ceil(KEYS_OF_PART).checked_next_power_of_two().unwrap_or(1);
        let mut parts = 1_u64;
        while times(&[parts, 2, pairs]) < multiprocessors.saturating_mul(2) {
            parts = parts.saturating_mul(2);
        }
        parts.min(wanted)
    }

    /// Bytes of the workspace of the forward pass on a device with this many multiprocessors.
    pub fn forward(&self, multiprocessors: u64) -> u64 {
        if self.queries != 1 {
            return 256;
        }
        let parts = self.parts(multiprocessors);
        if parts == 1 {
            return 0;
        }
        // Each part's output and its weight, in single precision.
        let rows = times(&[self.batch, self.heads, parts, 4]);
        let outputs = rows.saturating_mul(self.width);
        outputs.saturating_add(part(rows).saturating_mul(2)).saturating_add(128)
    }

    /// Bytes of the workspace of the backward pass, without the sums and the queries' gradients in single
    /// precision, which are tensors of the caller's graph.
    pub fn backward(&self) -> u64 {
        if self.heads == self.key_heads {
            return 256;
        }
        // Gradients of keys and values for each head of the queries, before they are added.
        let gradient = times(&[self.batch, self.heads, self.keys, self.width, self.element_bytes]);
        part(gradient).saturating_mul(2).saturating_add(256)
    }
}

/// A batch norm in training whose channels lie last in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchNorm {
    /// How many channels the input has.
    pub channels: u64,
    /// Elements of a channel: the number of images times the places of an image.
    pub rows: u64,
    /// Whether elements are `float16`; otherwise they are `float32`.
    pub is_half: bool,
}

impl BatchNorm {
    /// Channels that a block of threads takes.
    fn width(&self) -> u64 {
        match self.channels {
            0..4 => 4,
            channels if channels.is_multiple_of(4) => 64,
            _ => 16,
        }
    }

    /// Bytes for the sums of each block: two numbers for each channel, and `more` numbers.
    fn sums(&self, rows_of_block: u64, more: u64) -> u64 {
        let width = self.width();
        let rows = self.rows.div_ceil(rows_of_block);
        let block = times(&[2 * width + more, 4, rows]).saturating_add(4);
        self.channels.div_ceil(width).saturating_mul(block)
    }

    /// Bytes of the workspace of the forward pass.
    pub fn forward(&self) -> u64 {
        let rows = match (self.width() == 4, self.is_half) {
            (true, false) => 256,
            (true, true) => 640,
            (false, false) => 64,
            (false, true) => 160,
        };
        self.sums(rows, 1).saturating_add(1072)
    }

    /// Bytes of the workspace of the backward pass.
    pub fn backward(&self) -> u64 {
        self.sums(if self.width() == 4 { 384 } else { 96 }, 0).saturating_add(1056)
    }
}

/// Bytes of the workspace of the CTC loss and its gradient, for probabilities of `steps` x `batch` x
/// `classes` and at most 255 labels a sequence. `steps` is the number of time steps.
pub fn ctc(steps: u64, batch: u64, classes: u64) -> u64 {
    // Forward and backward variables for each label and the blanks around it.
    let variables = 2 * (2 * 255 + 1) * 4;
    let step = classes.saturating_mul(4).saturating_add(variables);
    steps.saturating_mul(step).saturating_add(2052).saturating_mul(batch)
}
