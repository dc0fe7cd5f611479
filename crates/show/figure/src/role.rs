//! Roles of colors: each mark names its role, and a theme gives the role a color.

use blockyard_record::{Breakdown, Bytes};
use serde::{Deserialize, Serialize};

/// One of the classes that the capacity is divided into: every byte is in exactly one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BreakdownClass {
    /// Requested bytes of allocated blocks.
    Requested,
    /// Allocated bytes that nobody requested: allocated minus requested.
    Rounding,
    /// Blocks whose free waits for another stream.
    Pending,
    /// Reserved, and part of no active block.
    Cached,
    /// Not reserved by the allocator.
    Free,
}

impl BreakdownClass {
    /// All classes, in the order in which figures stack them.
    pub const ALL: [Self; 5] = [Self::Requested, Self::Rounding, Self::Pending, Self::Cached, Self::Free];

    /// How many bytes of the breakdown are in this class.
    pub fn bytes(self, breakdown: &Breakdown) -> Bytes {
        match self {
            Self::Requested => breakdown.requested,
            Self::Rounding => breakdown.rounding,
            Self::Pending => breakdown.pending,
            Self::Cached => breakdown.cached,
            Self::Free => breakdown.free,
        }
    }

    /// The name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Rounding => "rounding",
            Self::Pending => "pending",
            Self::Cached => "cached",
            Self::Free => "free",
        }
    }

    /// The meaning of the class, as a sentence for a tooltip.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Requested => "Bytes in use that the program asked for.",
            Self::Rounding => {
                "Bytes in use beyond what was asked for: sizes are rounded up, small remainders stay."
            }
            Self::Pending => {
                "Bytes given back by the program that wait until another stream is done with them."
            }
            Self::Cached => {
                "Bytes that the allocator keeps ready for later requests instead of giving them back."
            }
            Self::Free => "Bytes of the device that the allocator does not hold.",
        }
    }

    /// The color role of the class.
    pub fn role(self) -> Role {
        match self {
            Self::Requested => Role::Requested,
            Self::Rounding => Role::Rounding,
            Self::Pending => Role::Pending,
            Self::Cached => Role::Cached,
            Self::Free => Role::Free,
        }
    }
}

/// The meaning of a mark. The theme decides the color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Requested bytes.
    Requested,
    /// Allocated bytes beyond the requested bytes.
    Rounding,
    /// Bytes of pending frees.
    Pending,
    /// Cached bytes.
    Cached,
    /// Free bytes of the device.
    Free,
    /// The border between two blocks of a split.
    SplitEdge,
    /// The most bytes ever allocated.
    PeakAllocated,
    /// The most bytes ever reserved.
    PeakReserved,
    /// The most bytes that may be reserved, or all bytes of the device.
    Limit,
    /// A request that failed.
    Failure,
    /// The current position.
    Cursor,
    /// The frame around the selected block.
    Selection,
    /// The mark under the pointer.
    Hover,
    /// A change by the current step.
    Changed,
    /// Words and numbers.
    Text,
    /// Text of less weight.
    TextMuted,
    /// Text on [`Role::Requested`].
    TextOnRequested,
    /// Axes and guide lines.
    Grid,
    /// The background of the figure.
    Background,
    /// The background of rows of the small pool.
    PoolSmall,
    /// The background of rows of the large pool.
    PoolLarge,
    /// A stream by its index, modulo [`Role::STREAMS`].
    Stream(u8),
    /// A group of allocations by its index, modulo [`Role::GROUPS`]. The last is for all that have no group.
    Group(u8),
    /// A category of memory, by its place in [`Role::CATEGORIES`], modulo [`Role::CATEGORY_COLORS`]. The last color is
    /// for allocations without a stack.
    Category(u8),
    /// A step of an ordered quantity, as the size or the age of allocations: one hue, from the smallest,
    /// which is nearest to the background, to the largest, modulo [`Role::STEPS`].
    Step(u8),
}

impl Role {
    /// How many steps of an ordered quantity have their own color.
    pub const STEPS: u8 = 6;

    /// The categories of a program's memory, in this order: parameters, gradients, states of the optimizer,
    /// activations, input, workspaces, temporaries. The first four are the categories that a stack shows, so
    /// that a category has one color in all figures; the last three are shades of one hue, for memory whose
    /// category no stack shows.
    pub const CATEGORIES: [Self; 7] = [
        Self::Category(0),
        Self::Category(1),
        Self::Category(2),
        Self::Category(3),
        Self::Category(4),
        Self::Category(5),
        Self::Category(6),
    ];

    /// How many categories have their own color, with allocations without a stack.
    pub const CATEGORY_COLORS: u8 = 8;

    /// How many streams have their own color.
    pub const STREAMS: u8 = 6;

    /// How many groups of allocations have their own color: eight hues, and the grey of all others.
    pub const GROUPS: u8 = 9;

    /// The role with its index in bounds, as [`Role::all`] has it.
    #[must_use]
    pub fn known(self) -> Self {
        match self {
            Self::Stream(index) => Self::Stream(index % Self::STREAMS),
            Self::Group(index) => Self::Group(index % Self::GROUPS),
            Self::Category(index) => Self::Category(index % Self::CATEGORY_COLORS),
            Self::Step(index) => Self::Step(index % Self::STEPS),
            other => other,
        }
    }

    /// The CSS variable that holds the role's color: `--role-requested`.
    pub fn css_variable(self) -> &'static str {
        match self {
            Self::Requested => "--role-requested",
            Self::Rounding => "--role-rounding",
            Self::Pending => "--role-pending",
            Self::Cached => "--role-cached",
            Self::Free => "--role-free",
            Self::SplitEdge => "--role-split-edge",
            Self::PeakAllocated => "--role-peak-allocated",
            Self::PeakReserved => "--role-peak-reserved",
            Self::Limit => "--role-limit",
            Self::Failure => "--role-failure",
            Self::Cursor => "--role-cursor",
            Self::Selection => "--role-selection",
            Self::Hover => "--role-hover",
            Self::Changed => "--role-changed",
            Self::Text => "--role-text",
            Self::TextMuted => "--role-text-muted",
            Self::TextOnRequested => "--role-text-on-requested",
            Self::Grid => "--role-grid",
            Self::Background => "--role-background",
            Self::PoolSmall => "--role-pool-small",
            Self::PoolLarge => "--role-pool-large",
            Self::Stream(index) => numbered(&STREAM_VARIABLES, index),
            Self::Group(index) => numbered(&GROUP_VARIABLES, index),
            Self::Category(index) => numbered(&CATEGORY_VARIABLES, index),
            Self::Step(index) => numbered(&STEP_VARIABLES, index),
        }
    }
}

fn numbered(variables: &[&'static str], index: u8) -> &'static str {
    variables.iter().cycle().nth(index.into()).copied().unwrap_or_default()
}

macro_rules! variables {
    ($name:literal $($number:literal)*) => { [$(concat!("--role-", $name, "-", $number)),*] };
}

const STREAM_VARIABLES: [&str; Role::STREAMS as usize] = variables!("stream" 0 1 2 3 4 5);
const GROUP_VARIABLES: [&str; Role::GROUPS as usize] = variables!("group" 0 1 2 3 4 5 6 7 8);
const CATEGORY_VARIABLES: [&str; Role::CATEGORY_COLORS as usize] = variables!("category" 0 1 2 3 4 5 6 7);
const STEP_VARIABLES: [&str; Role::STEPS as usize] = variables!("step" 0 1 2 3 4 5);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_role_has_a_variable_of_its_own() {
        let names: BTreeSet<_> = Role::all().map(Role::css_variable).collect();
        assert_eq!(names.len(), Role::all().count());
        assert!(names.iter().all(|name| name.starts_with("--role-")));
    }
}
