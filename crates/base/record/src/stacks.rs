//! Stacks and their frames, each stored once.

use serde::{Deserialize, Serialize};

use crate::encoding::EncodingError;
use crate::intern::{Index, hash_numbers};
use crate::{FrameId, StackId, TextId, Texts};

/// One frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// The function's name.
    pub name: &'a str,
    /// The file that holds the function.
    pub filename: &'a str,
    /// The line that was running, counted from 1; 0 if the line is not known.
    pub line: u32,
}

/// Interned stacks, with their frames and texts: equal stacks are stored once and have one number.
///
/// A file of a hundred thousand events has a few hundred different stacks. Stack 0 is the stack without
/// frames.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "UncheckedStacks")]
pub struct Stacks {
    texts: Texts,
    /// The number of the name, the number of the file name, and the line.
    frames: Vec<[u32; 3]>,
    /// The frames of all stacks, one stack after the other.
    members: Vec<u32>,
    /// Where each stack ends in the members.
    ends: Vec<u32>,
    #[serde(skip)]
    frame_index: Index,
    #[serde(skip)]
    stack_index: Index,
}

/// The encoded form, before it is checked.
#[derive(Deserialize)]
struct UncheckedStacks {
    texts: Texts,
    frames: Vec<[u32; 3]>,
    members: Vec<u32>,
    ends: Vec<u32>,
}

impl TryFrom<UncheckedStacks> for Stacks {
    type Error = EncodingError;

    fn try_from(
        UncheckedStacks { texts, frames, members, ends }: UncheckedStacks,
    ) -> Result<Self, Self::Error> {
        let is_sound = ends.first() == Some(&0)
            && ends.is_sorted()
            && ends.last().is_some_and(|end| *end as usize == members.len());
        if !is_sound {
            return Err(EncodingError::Stacks);
        }
        Ok(Self {
            texts,
            frames,
            members,
            ends,
            frame_index: Index::default(),
            stack_index: Index::default(),
        })
    }
}

impl Default for Stacks {
    fn default() -> Self {
        let mut stacks = Self {
            texts: Texts::default(),
            frames: Vec::new(),
            members: Vec::new(),
            ends: vec![0],
            frame_index: Index::default(),
            stack_index: Index::default(),
        };
        stacks.stack_index.insert(StackId::EMPTY.get(), hash_numbers(&[]), |_| hash_numbers(&[]));
        stacks
    }
}

impl Stacks {
    /// The texts of frames, and other texts that were interned here.
    #[must_use]
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// The number of the text; `None` once there are 4 GiB of texts.
    pub fn intern_text(&mut self, text: &str) -> Option<TextId> {
        self.texts.intern(text)
    }

    /// The number of the frame; `None` after 2^32 of them.
    pub fn intern_frame(&mut self, name: TextId, filename: TextId, line: u32) -> Option<FrameId> {
        let frame = [name.get(), filename.get(), line];
        let hash = hash_numbers(&frame);
        let Self { frames, frame_index, .. } = self;
        let is_equal = |number: u32| frames.get(number as usize) == Some(&frame);
        if let Some(found) = frame_index.find(hash, is_equal) {
            return Some(FrameId::new(found));
        }
        let number = u32::try_from(frames.len()).ok().filter(|number| *number < u32::MAX)?;
        frames.push(frame);
        frame_index.insert(number, hash, |number| {
            frames.get(number as usize).map_or(0, |frame| hash_numbers(frame))
        });
        Some(FrameId::new(number))
    }

    /// The number of the stack with these frames, innermost first; `None` once there are 2^32 frames in
    /// stacks.
    pub fn intern_stack(&mut self, stack: &[u32]) -> Option<StackId> {
        let hash = hash_numbers(stack);
        let Self { members, ends, stack_index, .. } = self;
        let found = stack_index.find(hash, |number| members_of(members, ends, number) == stack);
        if let Some(found) = found {
            return Some(StackId::new(found));
        }
        let number = u32::try_from(ends.len()).ok().filter(|number| *number < u32::MAX)?;
        let end = u32::try_from(members.len().checked_add(stack.len())?).ok()?;
        members.extend_from_slice(stack);
        ends.push(end);
        stack_index.insert(number, hash, |number| hash_numbers(members_of(members, ends, number)));
        Some(StackId::new(number))
    }

    /// The frames of the stack, innermost first.
    #[must_use]
    pub fn frames(
        &self,
        stack: StackId,
    ) -> impl ExactSizeIterator<Item = FrameId> + DoubleEndedIterator + '_ {
        members_of(&self.members, &self.ends, stack.get()).iter().map(|frame| FrameId::new(*frame))
    }

    /// The frame with this number; a frame without texts if no such number exists.
    #[must_use]
    pub fn frame(&self, id: FrameId) -> Frame<'_> {
        let [name, filename, line] =
            self.frames.get(id.get() as usize).copied().unwrap_or([u32::MAX, u32::MAX, 0]);
        Frame {
            name: self.texts.get(TextId::new(name)),
            filename: self.texts.get(TextId::new(filename)),
            line,
        }
    }

    /// The frames of the stack as texts, innermost first: `forward (net.py:12)`.
    #[must_use]
    pub fn frame_texts(&self, stack: StackId) -> Vec<String> {
        let frames = self.frames(stack).map(|frame| self.frame(frame));
        frames.map(|frame| format!("{} ({}:{})", frame.name, frame.filename, frame.line)).collect()
    }

    /// The number of different stacks, including the stack without frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no stack has a frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.len() <= 1
    }

    /// The number of different frames.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.texts.size()
            + self.frames.capacity() * size_of::<[u32; 3]>()
            + (self.members.capacity() + self.ends.capacity()) * size_of::<u32>()
            + self.frame_index.size()
            + self.stack_index.size()
    }
}

fn members_of<'a>(members: &'a [u32], ends: &[u32], number: u32) -> &'a [u32] {
    let number = number as usize;
    let start = number.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |end| *end as usize);
    let end = ends.get(number).map_or(start, |end| *end as usize);
    members.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_have_one_number() {
        let mut stacks = Stacks::default();
        let file = stacks.intern_text("train.py").unwrap();
        let frames: Vec<u32> = (0..50)
            .map(|line| {
                let name = stacks.intern_text(&format!("f{}", line % 5)).unwrap();
                stacks.intern_frame(name, file, line).unwrap().get()
            })
            .collect();
        let make = |stacks: &mut Stacks| -> Vec<StackId> {
            (0..50).map(|depth| stacks.intern_stack(&frames[..depth]).unwrap()).collect()
        };
        let first = make(&mut stacks);
        assert_eq!(make(&mut stacks), first);
        assert_eq!((first[0], stacks.len(), stacks.frame_count()), (StackId::EMPTY, 50, 50));
        assert_eq!(stacks.frames(first[3]).len(), 3);
        let inner = stacks.frames(first[9]).last().unwrap();
        assert_eq!(stacks.frame(inner), Frame { name: "f3", filename: "train.py", line: 8 });

        let mut again: Stacks = postcard::from_bytes(&postcard::to_allocvec(&stacks).unwrap()).unwrap();
        assert_eq!(again.frame(inner), stacks.frame(inner));
        assert_eq!(again.frames(first[49]).len(), 49);
        assert_eq!(again.frames(StackId::new(5000)).len(), 0);
        // Decoded stacks have no hash tables, so that a known stack gets a new number.
        assert!(again.intern_stack(&frames[..7]).is_some());
    }
}
