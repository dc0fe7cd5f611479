//! Which color each allocation has, and the legend.

use std::sync::Arc;

use blockyard_record::{AllocationId, Bytes, Recording, StackCategory, StackId, grouped};
use blockyard_rules::size;
use rustc_hash::FxHashMap;

use crate::allocations::{Allocations, NEVER};
use crate::conversions::step_u32;
use crate::fill::Fill;
use crate::holders::{GroupBy, GroupKey, group_key, group_text};
use crate::role::Role;

/// The property of allocations that colors show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColorBy {
    /// The line of the program that made the allocation.
    #[default]
    Line,
    /// The kind of the allocation's data, if the stack shows the kind.
    Category,
    /// The name that the program gave to the allocation, without the number of an element: `weight` of
    /// `weight[2]`.
    Name,
    /// The size of the allocation's block.
    Size,
    /// The stream that the allocation's block belongs to.
    Stream,
    /// The memory pool of the allocation's block.
    Pool,
    /// The number of steps for which the allocation lives.
    Age,
}

impl ColorBy {
    /// All choices, in the order of the page.
    pub const ALL: [Self; 7] =
        [Self::Line, Self::Category, Self::Name, Self::Size, Self::Stream, Self::Pool, Self::Age];

    /// The name in a list.
    pub fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Category => "category",
            Self::Name => "name",
            Self::Size => "size",
            Self::Stream => "stream",
            Self::Pool => "pool",
            Self::Age => "age",
        }
    }

    /// The choice with this [`name`](Self::name); `None` if no choice has it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// One color of a legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegendEntry {
    /// The meaning of the color, as a text.
    pub text: String,
    /// The color.
    pub role: Role,
    /// What the verdict says about the line, if it blames the line: `grows`.
    pub blame: Option<&'static str>,
    /// How many allocations have the color.
    pub count: usize,
    /// The sizes of all allocations with the color, added up over the whole recording.
    pub bytes: Bytes,
}

impl LegendEntry {
    /// The color without a pattern.
    pub fn fill(&self) -> Fill {
        Fill::solid(self.role)
    }
}

/// What a verdict names as the cause: a line of the program, a stream or a memory pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The colors that show the cause.
    pub by: ColorBy,
    /// The line, the stream or the memory pool, as [`group_text`] writes it; `None` where no single one is the
    /// cause.
    pub group: Option<String>,
    /// What the group does, in a word or two: `grows`.
    pub what: &'static str,
}

/// The color of each allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The place in the legend of each row's color.
    places: Arc<[u8]>,
    legend: Vec<LegendEntry>,
}

/// The upper bounds of sizes in bytes and of ages in steps, with their names.
const SIZES: [(u64, &str); 6] = [
    (size::SMALL_SIZE.get(), "up to 1 MiB (small pool)"),
    (size::MIN_LARGE_ALLOCATION.get(), "up to 10 MiB"),
    (64 << 20, "up to 64 MiB"),
    (256 << 20, "up to 256 MiB"),
    (1 << 30, "up to 1 GiB"),
    (u64::MAX, "more than 1 GiB"),
];
const AGES: [(u64, &str); 6] = [
    (10, "up to 10 requests"),
    (100, "up to 100 requests"),
    (1_000, "up to 1,000 requests"),
    (10_000, "up to 10,000 requests"),
    (u64::MAX - 1, "more than 10,000 requests"),
    (u64::MAX, "never freed in the recording"),
];

impl Groups {
    /// Groups the allocations by what `by` says. The largest groups have a separate entry each; the others
    /// share one. The group that a verdict blames has the first entry and the strongest color.
    #[must_use]
    pub fn new(allocations: &Allocations, recording: &Recording, by: ColorBy, blame: Option<&Blame>) -> Self {
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
            ColorBy::Line => Self::keys(allocations, recording, GroupBy::Line, blame),
            ColorBy::Category => Self::keys(allocations, recording, GroupBy::Category, None),
            ColorBy::Name => Self::names(allocations, recording),
            ColorBy::Stream => Self::keys(allocations, recording, GroupBy::Stream, blame),
            ColorBy::Pool => Self::keys(allocations, recording, GroupBy::Pool, blame),
        }
    }

    /// Groups the allocations by categories that the caller knows: `place_of` is the place of an allocation's
    /// category among `names`, which are in the order of [`Role::CATEGORIES`]. Allocations without a place
    /// share the last color.
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
        Self::counted(allocations, places, texts, |place| {
            Role::CATEGORIES.get(usize::from(place)).copied().unwrap_or(OTHERS)
        })
    }

    /// The place in the legend of a row's color.
    pub fn place(&self, row: usize) -> usize {
        self.places.get(row).map_or(0, |place| *place as usize)
    }

    /// The color of a row: every table, figure and map that names a color takes it from here.
    pub fn role(&self, row: usize) -> Role {
        self.legend.get(self.place(row)).map_or(OTHERS, |entry| entry.role)
    }

    /// The places of all rows.
    pub(crate) fn places(&self) -> Arc<[u8]> {
        self.places.clone()
    }

    /// The meaning of each color, in the order of the legend.
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
        Self::counted(allocations, places, texts, Role::Step)
    }

    fn keys(allocations: &Allocations, recording: &Recording, by: GroupBy, blame: Option<&Blame>) -> Self {
        // The key of a stack is found once.
        let mut of_stacks: FxHashMap<StackId, Option<GroupKey>> = FxHashMap::default();
        let mut numbers: FxHashMap<GroupKey, usize> = FxHashMap::default();
        let mut sums: GroupSums =
            GroupSums { recording, by, blame, all: Vec::new(), of_texts: FxHashMap::default() };
        let mut of_rows: Vec<usize> = Vec::with_capacity(allocations.len());
        let peak = step_u32(allocations.busiest(0, allocations.moments()));
        for row in 0..allocations.len() {
            let stack = allocations.id(row).map(|id| recording.allocation_stack(id));
            let key = match stack.filter(|stack| by.is_of_stack(*stack)) {
                Some(stack) => {
                    *of_stacks.entry(stack).or_insert_with(|| group_key(allocations, recording, row, by))
                }
                None => group_key(allocations, recording, row, by),
            };
            let key = key.unwrap_or(GroupKey::Stack(StackId::EMPTY));
            let number = *numbers.entry(key).or_insert_with(|| sums.number(key));
            sums.weigh(number, allocations, row, peak);
            of_rows.push(number);
        }
        Self::of_group_sums(allocations, &sums, &of_rows)
    }

    fn names(allocations: &Allocations, recording: &Recording) -> Self {
        let by = GroupBy::Stack;
        let mut sums: GroupSums =
            GroupSums { recording, by, blame: None, all: Vec::new(), of_texts: FxHashMap::default() };
        let mut of_rows: Vec<usize> = Vec::with_capacity(allocations.len());
        let peak = step_u32(allocations.busiest(0, allocations.moments()));
        for row in 0..allocations.len() {
            let name = allocations.id(row).and_then(|id| recording.name(id));
            let name = name.map_or("without a name", |name| name.split('[').next().unwrap_or(name));
            let number = sums.number_of(None, name.to_owned());
            sums.weigh(number, allocations, row, peak);
            of_rows.push(number);
        }
        Self::of_group_sums(allocations, &sums, &of_rows)
    }

    /// The colors of rows whose groups are known by their numbers.
    fn of_group_sums(allocations: &Allocations, sums: &GroupSums<'_>, of_rows: &[usize]) -> Self {
        let (entries, places) = sums.entries();
        let of_rows = of_rows.iter().map(|number| places.get(*number).copied().unwrap_or(0)).collect();
        let (texts, roles): (Vec<String>, Vec<Role>) = entries.into_iter().unzip();
        let mut groups = Self::counted(allocations, of_rows, texts, |place| {
            roles.get(usize::from(place)).copied().unwrap_or(OTHERS)
        });
        if let (Some(blame), Some(first)) = (sums.blame, groups.legend.first_mut()) {
            first.blame = Some(blame.what).filter(|_| blame.group.as_ref() == Some(&first.text));
        }
        groups
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
            .map(|(text, place)| LegendEntry {
                text,
                role: role_of(place),
                blame: None,
                count: 0,
                bytes: Bytes::ZERO,
            })
            .collect();
        for (place, size) in places.iter().zip(allocations.sizes()) {
            if let Some(entry) = legend.get_mut(*place as usize) {
                entry.count += 1;
                entry.bytes = entry.bytes.saturating_add(Bytes::new(*size));
            }
        }
        Self { places: places.into(), legend }.without_absent()
    }

    /// Removes the entries of the legend that no allocation has.
    fn without_absent(mut self) -> Self {
        let is_present: Vec<bool> = self.legend.iter().map(|entry| entry.count > 0).collect();
        if is_present.iter().all(|is_present| *is_present) {
            return self;
        }
        let before = |place: usize| is_present.iter().take(place).filter(|is_present| **is_present).count();
        let new: Vec<u8> =
            (0..is_present.len()).map(|place| u8::try_from(before(place)).unwrap_or(u8::MAX)).collect();
        // A row without an entry keeps a place beyond the legend.
        let beyond = u8::try_from(before(is_present.len())).unwrap_or(u8::MAX);
        let place = |place: &u8| new.get(usize::from(*place)).copied().unwrap_or(beyond);
        self.places = self.places.iter().map(place).collect();
        self.legend.retain(|entry| entry.count > 0);
        self
    }
}

/// The color of the group that a verdict blames. Other groups never have it.
const BLAMED: Role = Role::Group(0);

/// The color of allocations that have no separate entry.
const OTHERS: Role = Role::Group(Role::GROUPS - 1);

/// The groups of allocations by texts, before colors are given.
struct GroupSums<'a> {
    recording: &'a Recording,
    by: GroupBy,
    blame: Option<&'a Blame>,
    all: Vec<GroupSum>,
    of_texts: FxHashMap<String, usize>,
}

/// A group of allocations.
struct GroupSum {
    text: String,
    category: Option<StackCategory>,
    /// Bytes times steps.
    area: u128,
    /// Bytes at the moment with the most active bytes.
    at_peak: u128,
}

impl GroupSums<'_> {
    /// The number of a key's group, which may be new.
    fn number(&mut self, key: GroupKey) -> usize {
        let category = match key {
            GroupKey::Category(category) => Some(category),
            // Answers have one row for both.
            GroupKey::Line(None) | GroupKey::Library { is_workspace: false } => Some(StackCategory::Unknown),
            _ => None,
        };
        self.number_of(category, group_text(self.recording, key))
    }

    /// The number of the group with this text, which may be new.
    fn number_of(&mut self, category: Option<StackCategory>, text: String) -> usize {
        let next = self.all.len();
        let number = *self.of_texts.entry(text.clone()).or_insert(next);
        if number == next {
            self.all.push(GroupSum { text, category, area: 0, at_peak: 0 });
        }
        number
    }

    /// Adds a row to the group with this number.
    fn weigh(&mut self, number: usize, allocations: &Allocations, row: usize, peak: u32) {
        if let Some(sum) = self.all.get_mut(number) {
            sum.area = sum.area.saturating_add(area_of(allocations, row).into());
            sum.at_peak = sum.at_peak.saturating_add(bytes_at(allocations, row, peak).into());
        }
    }

    /// The numbers of the groups, first those that hold most at the peak, and of equal ones those that cover
    /// most of the figure.
    fn largest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        let weight = |number: &usize| self.all.get(*number).map_or((0, 0), |it| (it.at_peak, it.area));
        order.sort_by_key(|number| std::cmp::Reverse(weight(number)));
        order
    }

    /// The entries of the legend in their order, and the place in it of each group.
    fn entries(&self) -> (Vec<(String, Role)>, Vec<u8>) {
        match self.by {
            GroupBy::Line => self.of_lines(),
            GroupBy::Category => {
                let category = |number: &usize| self.all.get(*number).and_then(|sum| sum.category);
                let mut order: Vec<usize> = (0..self.all.len()).collect();
                order.sort_by_key(category);
                let entry = |number: &usize| {
                    Some((self.all.get(*number)?.text.clone(), category_role(category(number))))
                };
                (order.iter().filter_map(entry).collect(), places_of(&order, |place| place))
            }
            // Streams keep the order in which they appear.
            GroupBy::Stream => self.of_largest((0..self.all.len()).collect()),
            _ => self.of_largest(self.largest_first()),
        }
    }

    fn is_blamed(&self, number: usize) -> bool {
        let text = self.all.get(number).map(|sum| &sum.text);
        self.blame.is_some_and(|blame| text.is_some() && blame.group.as_ref() == text)
    }

    /// The group that the verdict blames with the strongest color, the first other groups with a color each, and
    /// one grey for the rest.
    fn of_largest(&self, mut order: Vec<usize>) -> (Vec<(String, Role)>, Vec<u8>) {
        // The sort keeps the order of the others.
        order.sort_by_key(|number| !self.is_blamed(*number));
        let has_blamed = order.first().is_some_and(|number| self.is_blamed(*number));
        let most = if has_blamed { NAMED } else { NAMED - 1 };
        let shown = order.len().min(most);
        let named = order.iter().take(shown).zip(u8::from(!has_blamed)..);
        let mut entries: Vec<(String, Role)> = named
            .filter_map(|(number, color)| Some((self.all.get(*number)?.text.clone(), Role::Group(color))))
            .collect();
        if let [only] = order.get(shown..).unwrap_or_default() {
            entries.extend(self.all.get(*only).map(|sum| (sum.text.clone(), OTHERS)));
        } else if order.len() > shown {
            entries.push((format!("{} others", grouped(order.len() - shown)), OTHERS));
        }
        (entries, places_of(&order, |place| place.min(shown)))
    }

    /// The line that the verdict blames with the strongest color, the lines that hold most at the peak with
    /// the next colors in their order, and two quiet greys: for all other lines, and for allocations without a
    /// line of the program. So a reader sees what matters before the legend is read.
    fn of_lines(&self) -> (Vec<(String, Role)>, Vec<u8>) {
        let peak: u128 = self.all.iter().map(|sum| sum.at_peak).fold(0, u128::saturating_add);
        let (mut blamed, mut largest, mut others, mut unknown) = (vec![], vec![], vec![], vec![]);
        for number in self.largest_first() {
            let Some(sum) = self.all.get(number) else { continue };
            let is_blamed = self.is_blamed(number);
            // An area of less than a fiftieth is hardly seen.
            let is_large = largest.len() < LINES && sum.at_peak.saturating_mul(50) >= peak;
            let of = match sum.category {
                _ if is_blamed => &mut blamed,
                Some(_) => &mut unknown,
                None if is_large => &mut largest,
                None => &mut others,
            };
            of.push(number);
        }
        let mut entries = Vec::new();
        let mut places = vec![0; self.all.len()];
        let mut add = |of: &[usize], text: Option<String>, role: Role| {
            let Some(first) = of.first().and_then(|number| self.all.get(*number)) else { return };
            for number in of {
                if let Some(place) = places.get_mut(*number) {
                    *place = u8::try_from(entries.len()).unwrap_or(u8::MAX);
                }
            }
            entries.push((text.unwrap_or_else(|| first.text.clone()), role));
        };
        add(&blamed, None, BLAMED);
        for (number, color) in largest.iter().zip(1_u8..) {
            add(&[*number], None, Role::Group(color));
        }
        let count = others.len();
        add(&others, (count > 1).then(|| format!("{} other lines", grouped(count))), OTHERS);
        let text = (unknown.len() > 1).then(|| "no line of the program".to_owned());
        add(&unknown, text, category_role(Some(StackCategory::Unknown)));
        (entries, places)
    }
}

/// How many groups have a separate entry at most.
const NAMED: usize = Role::GROUPS as usize - 1;

/// How many lines have a color beside the line that a verdict blames: more are hard to tell apart, and their
/// legend would be longer than a line.
const LINES: usize = 5;

/// For each number, `place` of its position in `order`.
fn places_of(order: &[usize], place: impl Fn(usize) -> usize) -> Vec<u8> {
    let mut places = vec![0; order.len()];
    for (at, number) in order.iter().enumerate() {
        if let Some(found) = places.get_mut(*number) {
            *found = u8::try_from(place(at)).unwrap_or(u8::MAX);
        }
    }
    places
}

/// The color of a category.
fn category_role(category: Option<StackCategory>) -> Role {
    match StackCategory::ALL.iter().position(|known| Some(*known) == category) {
        Some(place) if category != Some(StackCategory::Unknown) => {
            Role::CATEGORIES.get(place).copied().unwrap_or(OTHERS)
        }
        _ => Role::Category(Role::CATEGORY_COLORS - 1),
    }
}

/// How much of the figure the allocation covers: bytes times steps.
fn area_of(allocations: &Allocations, row: usize) -> u64 {
    let size = allocations.sizes().get(row).copied().unwrap_or(0);
    let start = allocations.starts().get(row).copied().unwrap_or(0) as usize;
    let end = allocations.ends().get(row).map_or(0, |end| (*end as usize).min(allocations.moments()));
    size.saturating_mul(end.saturating_sub(start) as u64)
}

/// The allocation's size, if it is active at the moment.
fn bytes_at(allocations: &Allocations, row: usize, moment: u32) -> u64 {
    let is_active = allocations.starts().get(row).is_some_and(|start| *start <= moment)
        && allocations.ends().get(row).is_some_and(|end| moment < *end);
    allocations.sizes().get(row).copied().filter(|_| is_active).unwrap_or(0)
}
