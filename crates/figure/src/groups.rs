//! Which color each allocation has, and the legend.

use blockyard_rules::size;
use std::sync::Arc;

use blockyard_record::{AllocationId, Bytes, Recording, StackId};
use rustc_hash::FxHashMap;

use crate::allocations::{Allocations, NEVER};
use crate::holders::{GroupBy, GroupKey, StackCategory, group_key, group_text};
use crate::numbers::grouped_count;
use crate::role::Role;

/// What the color of an allocation says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColorBy {
    /// Its stack.
    #[default]
    Stack,
    /// The kind of its data, as far as the stack tells.
    Category,
    /// The size of its block.
    Size,
    /// Its stream.
    Stream,
    /// Its pool.
    Pool,
    /// How many steps it lives.
    Age,
}

impl ColorBy {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Stack, Self::Category, Self::Size, Self::Stream, Self::Pool, Self::Age];

    /// The name in a list.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::Category => "category",
            Self::Size => "size",
            Self::Stream => "stream",
            Self::Pool => "pool",
            Self::Age => "age",
        }
    }

    /// The color of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// One color of a legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegendEntry {
    /// What the color stands for.
    pub text: String,
    /// The color.
    pub role: Role,
    /// How many allocations have it.
    pub count: usize,
    /// The sizes of all of them, added up over the whole recording.
    pub bytes: Bytes,
}

/// The color of each allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    // The place in the legend, for each row.
    places: Arc<[u8]>,
    legend: Vec<LegendEntry>,
}

/// The upper bounds of sizes and of ages, and what they are called.
const SIZES: [(u64, &str); 6] = [
    (size::SMALL_SIZE.get(), "up to 1 MiB (small pool)"),
    (size::MIN_LARGE_ALLOCATION.get(), "up to 10 MiB"),
    (64 << 20, "up to 64 MiB"),
    (256 << 20, "up to 256 MiB"),
    (1 << 30, "up to 1 GiB"),
    (u64::MAX, "more than 1 GiB"),
];
const AGES: [(u64, &str); 6] = [
    (10, "up to 10 steps"),
    (100, "up to 100 steps"),
    (1_000, "up to 1,000 steps"),
    (10_000, "up to 10,000 steps"),
    (u64::MAX - 1, "more than 10,000 steps"),
    (u64::MAX, "never freed in the recording"),
];

impl Groups {
    /// Groups the allocations by what the colors say. There are at most as many groups as [`Role::GROUPS`]; the smallest share
    /// the last one.
    #[must_use]
    pub fn new(allocations: &Allocations, recording: &Recording, by: ColorBy) -> Self {
        match by {
            ColorBy::Size => {
                Self::ranges(allocations, &SIZES, |row| allocations.sizes().get(row).copied().unwrap_or(0))
            }
            ColorBy::Age => Self::ranges(allocations, &AGES, |row| {
                let (start, end) = (allocations.starts().get(row), allocations.ends().get(row));
                match (start, end) {
                    (Some(start), Some(end)) if *end != NEVER => u64::from(end.saturating_sub(*start)),
                    _ => u64::MAX,
                }
            }),
            ColorBy::Stack => Self::keys(allocations, recording, GroupBy::Stack),
            ColorBy::Category => Self::keys(allocations, recording, GroupBy::Category),
            ColorBy::Stream => Self::keys(allocations, recording, GroupBy::Stream),
            ColorBy::Pool => Self::keys(allocations, recording, GroupBy::Pool),
        }
    }

    /// Groups the allocations by names that somebody else knows: `place_of` is the place of an allocation's name among `names`.
    /// Allocations without a place share the last color.
    #[must_use]
    pub fn named(
        allocations: &Allocations,
        names: &[&str],
        place_of: impl Fn(AllocationId) -> Option<usize>,
    ) -> Self {
        let last = usize::from(Role::GROUPS - 1);
        let place = |row: usize| {
            let place = allocations.id(row).and_then(&place_of).filter(|place| *place < names.len());
            u8::try_from(place.unwrap_or(last).min(last)).unwrap_or(0)
        };
        let places: Vec<u8> = (0..allocations.len()).map(place).collect();
        let texts = names.iter().map(|name| (*name).to_owned()).collect();
        Self::counted(allocations, places, texts, |place| Role::Group(place.min(Role::GROUPS - 1)))
    }

    /// The place in the legend of a row's color.
    #[must_use]
    pub fn place(&self, row: usize) -> usize {
        self.places.get(row).map_or(0, |place| *place as usize)
    }

    /// The places of all rows.
    pub(crate) fn places(&self) -> Arc<[u8]> {
        self.places.clone()
    }

    /// What the colors stand for.
    #[must_use]
    pub fn legend(&self) -> &[LegendEntry] {
        &self.legend
    }

    fn ranges(allocations: &Allocations, bounds: &[(u64, &str)], value: impl Fn(usize) -> u64) -> Self {
        let place = |row: usize| {
            let value = value(row);
            // Tables of bounds have fewer than ten rows.
            u8::try_from(bounds.partition_point(|(bound, _)| *bound < value)).unwrap_or(u8::MAX)
        };
        let places: Vec<u8> = (0..allocations.len()).map(place).collect();
        let texts = bounds.iter().map(|(_, text)| (*text).to_owned()).collect();
        Self::counted(allocations, places, texts, Role::Group)
    }

    fn keys(allocations: &Allocations, recording: &Recording, by: GroupBy) -> Self {
        // The key of a stack is found once.
        let mut of_stacks: FxHashMap<StackId, Option<GroupKey>> = FxHashMap::default();
        let mut numbers: FxHashMap<GroupKey, usize> = FxHashMap::default();
        let mut keys: Vec<(GroupKey, u128)> = Vec::new();
        let mut of_rows: Vec<usize> = Vec::with_capacity(allocations.len());
        for row in 0..allocations.len() {
            let key = match allocations.id(row).filter(|_| by.needs_stacks()) {
                Some(id) => *of_stacks
                    .entry(recording.allocation_stack(id))
                    .or_insert_with(|| group_key(allocations, recording, row, by)),
                None => group_key(allocations, recording, row, by),
            };
            let key = key.unwrap_or(GroupKey::Stack(StackId::EMPTY));
            let number = *numbers.entry(key).or_insert_with(|| {
                keys.push((key, 0));
                keys.len() - 1
            });
            if let Some((_, weight)) = keys.get_mut(number) {
                *weight = weight.saturating_add(weight_of(allocations, row).into());
            }
            of_rows.push(number);
        }
        let most = usize::from(Role::GROUPS);
        let mut order: Vec<usize> = (0..keys.len()).collect();
        let category = |number: usize| keys.get(number).map(|(key, _)| category_of(recording, *key));
        match by {
            // Streams and pools keep the order in which they appear, categories their own.
            GroupBy::Stream | GroupBy::Pool => {}
            GroupBy::Category => order.sort_by_key(|number| category(*number)),
            _ => order
                .sort_by_key(|number| std::cmp::Reverse(keys.get(*number).map_or(0, |(_, weight)| *weight))),
        }
        let mut roles: Vec<Role> = (0..Role::GROUPS).map(Role::Group).collect();
        match by {
            GroupBy::Category => {
                roles = order.iter().map(|number| site_role(category(*number).flatten(), 0)).collect();
            }
            GroupBy::Stack => {
                let shown = shaded(&mut order, &category);
                if let Some(shown) = shown {
                    roles = shown;
                }
            }
            _ => {}
        }
        let shown = if keys.len() > roles.len().min(most) { roles.len().min(most) - 1 } else { keys.len() };
        let mut places: Vec<u8> = vec![0; keys.len()];
        for (place, number) in order.iter().enumerate() {
            if let Some(found) = places.get_mut(*number) {
                *found = u8::try_from(place.min(shown)).unwrap_or(0);
            }
        }
        let mut texts: Vec<String> = order
            .iter()
            .take(shown)
            .filter_map(|number| keys.get(*number))
            .map(|(key, _)| group_text(recording, *key))
            .collect();
        if keys.len() > shown {
            texts.push(format!("{} others", grouped_count(keys.len() - shown)));
        }
        let of_rows = of_rows.iter().map(|number| places.get(*number).copied().unwrap_or(0)).collect();
        Self::counted(allocations, of_rows, texts, |place| {
            // The last color is grey: for the rest, where there is a rest.
            let is_rest = usize::from(place) >= shown;
            let own = roles.get(usize::from(place)).copied().filter(|_| !is_rest);
            own.unwrap_or(Role::Group(Role::GROUPS - 1))
        })
    }

    fn counted(
        allocations: &Allocations,
        places: Vec<u8>,
        texts: Vec<String>,
        role_of: impl Fn(u8) -> Role,
    ) -> Self {
        let mut legend: Vec<LegendEntry> = texts
            .into_iter()
            .zip(0_u8..)
            .map(|(text, place)| LegendEntry { text, role: role_of(place), count: 0, bytes: Bytes::ZERO })
            .collect();
        for (place, size) in places.iter().zip(allocations.sizes()) {
            if let Some(entry) = legend.get_mut(*place as usize) {
                entry.count += 1;
                entry.bytes = entry.bytes.saturating_add(Bytes::new(*size));
            }
        }
        Self { places: places.into(), legend }
    }
}

/// The category of a stack; `None` for other keys.
fn category_of(recording: &Recording, key: GroupKey) -> Option<StackCategory> {
    match key {
        GroupKey::Stack(stack) => Some(StackCategory::of(recording.stacks(), stack)),
        GroupKey::Category(category) => Some(category),
        _ => None,
    }
}

/// A shade of a category's hue.
fn site_role(category: Option<StackCategory>, shade: u8) -> Role {
    let known = StackCategory::ALL.iter().position(|known| Some(*known) == category);
    match known.and_then(|hue| u8::try_from(hue).ok()).filter(|hue| *hue < Role::HUES) {
        Some(hue) => Role::Site(hue.saturating_mul(Role::SHADES).saturating_add(shade.min(Role::SHADES - 1))),
        // Without a stack there is one site.
        None => Role::Site(Role::SITES - 1),
    }
}

/// Orders the sites that have a color by their categories, the heaviest first in each, and gives them the shades of the category's hue; at
/// most as many of a category as there are shades, so that no two have one color. `None`, and no other order, where all are of one
/// category: then each has its own hue.
fn shaded(
    order: &mut Vec<usize>,
    category: &impl Fn(usize) -> Option<Option<StackCategory>>,
) -> Option<Vec<Role>> {
    let most = usize::from(Role::GROUPS) - 1;
    let hue = |number: usize| category(number).flatten();
    if order.iter().take(most).all(|number| Some(hue(*number)) == order.first().map(|first| hue(*first))) {
        return None;
    }
    let mut shown: Vec<(Option<StackCategory>, u8, usize)> = Vec::new();
    for number in order.iter().copied() {
        let of = hue(number);
        let shade = shown.iter().filter(|(other, ..)| *other == of).count();
        if shown.len() < most && shade < usize::from(Role::SHADES) {
            shown.push((of, u8::try_from(shade).unwrap_or(0), number));
        }
    }
    shown.sort_unstable();
    order.retain(|number| !shown.iter().any(|(.., other)| other == number));
    order.splice(0..0, shown.iter().map(|(.., number)| *number));
    // One more color, for the rest.
    let roles = shown.into_iter().map(|(category, shade, _)| site_role(category, shade));
    Some(roles.chain(std::iter::once(Role::Group(Role::GROUPS - 1))).collect())
}

/// How much of the figure the allocation covers: bytes times steps.
fn weight_of(allocations: &Allocations, row: usize) -> u64 {
    let size = allocations.sizes().get(row).copied().unwrap_or(0);
    let start = allocations.starts().get(row).copied().unwrap_or(0) as usize;
    let end = allocations.ends().get(row).map_or(0, |end| (*end as usize).min(allocations.moments()));
    size.saturating_mul(end.saturating_sub(start) as u64)
}
