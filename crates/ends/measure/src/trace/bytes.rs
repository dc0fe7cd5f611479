//! Traces as bytes, to be passed into a page.

use super::{Opcode, Operation, OperationList};

/// Bytes that are not a list of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are not a list of operations")]
pub struct DecodeError;

impl OperationList {
    /// The trace without its name: 8 bytes of counts, then 16 bytes an operation.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + 16 * self.operations.len());
        bytes.extend(self.slots.to_le_bytes());
        bytes.extend(u32::from(self.streams).to_le_bytes());
        for op in &self.operations {
            bytes.extend(op.size.to_le_bytes());
            bytes.extend(op.slot.to_le_bytes());
            bytes.extend(op.stream.to_le_bytes());
            bytes.extend([op.kind as u8, 0]);
        }
        bytes
    }

    /// The trace that [`OperationList::to_bytes`] encoded.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for other bytes.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, DecodeError> {
        let (counts, ops) = bytes.split_first_chunk::<8>().ok_or(DecodeError)?;
        let [a, b, c, d, streams, more, ..] = *counts;
        let slots = u32::from_le_bytes([a, b, c, d]);
        let (ops, rest) = ops.as_chunks::<16>();
        let ops: Option<Vec<Operation>> = ops.iter().map(op).collect();
        let ops = ops.filter(|ops| rest.is_empty() && ops.iter().all(|op| op.slot < slots.max(1)));
        Ok(Self {
            name: name.to_owned(),
            operations: ops.ok_or(DecodeError)?,
            slots,
            streams: u16::from_le_bytes([streams, more]),
        })
    }
}

fn op(bytes: &[u8; 16]) -> Option<Operation> {
    let (size, rest) = bytes.split_first_chunk::<8>()?;
    let (slot, rest) = rest.split_first_chunk::<4>()?;
    let (stream, rest) = rest.split_first_chunk::<2>()?;
    let kinds = [
        Opcode::Allocate,
        Opcode::Free,
        Opcode::RecordStream,
        Opcode::Advance,
        Opcode::AdvanceAll,
        Opcode::EmptyCache,
    ];
    let kind = *kinds.get(usize::from(*rest.first()?))?;
    Some(Operation::new(
        kind,
        u32::from_le_bytes(*slot),
        u16::from_le_bytes(*stream),
        u64::from_le_bytes(*size),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_crosses_a_border_as_bytes() {
        let trace = OperationList::random_allocations("r", 100, 1 << 30);
        assert_eq!(OperationList::from_bytes("r", &trace.to_bytes()), Ok(trace));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(OperationList::from_bytes("r", &[0; 7]), Err(DecodeError));
        assert_eq!(OperationList::from_bytes("r", &[0; 9]), Err(DecodeError));
        let mut bytes = OperationList::ping_pong("p", 512, 1).to_bytes();
        bytes[8 + 14] = 9;
        assert_eq!(OperationList::from_bytes("p", &bytes), Err(DecodeError));
    }
}
