//! Python's pickles, read as data only.
//!
//! A pickle is a program for a small stack machine. [`Machine`] runs the opcodes that make plain values
//! (numbers, texts, lists, tuples, dictionaries) and stops at every other one, so that no file can name a
//! function, let alone call one. Reading is streaming: the machine keeps the values that are not finished,
//! and one entry of eight bytes for each value that the pickle may refer to again. Finished values go to the
//! [`Heap`](crate::snapshot::heap::Heap), which packs the rows of a snapshot.

mod input;
mod machine;
pub(crate) mod opcode;
mod writer;

pub(crate) use input::Input;
pub(crate) use machine::Machine;
pub(crate) use writer::{BATCH, PickleWriter};
