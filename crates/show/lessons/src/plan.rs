//! Plans for a class: which lessons are presented, in which order, and how long they take.

use crate::course::{course, current_id, title_of};

/// Where the exercise of a planned lesson is solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExerciseUse {
    /// The class solves it together, while the lesson is presented.
    InClass,
    /// Each student solves it at home.
    #[default]
    Homework,
    /// Nobody solves it.
    LeftOut,
}

/// A lesson of a teacher's own in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnLesson {
    /// The name that people see.
    pub title: String,
    /// The minutes with a class, without the exercise.
    pub minutes: u32,
    /// The lesson's text as an address has it, or the name of its file beside the page. The plan passes it on.
    pub source: String,
}

/// A lesson in a plan. Prints as [`Plan::from_text`] reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedLesson {
    /// The lesson's id.
    pub id: String,
    /// The lesson, if it is not one of the course.
    pub own: Option<OwnLesson>,
    /// Whether the class reads the lesson at home; else it is presented.
    pub is_at_home: bool,
    /// Where the exercise is solved; never in class if the lesson is read at home.
    pub exercise: ExerciseUse,
    /// The cards that a presentation leaves out, in their order.
    pub without: Vec<UnpresentedCard>,
    /// The minutes with a class, without the exercise, that the teacher has set.
    pub set_minutes: Option<u32>,
    /// The minutes of the break after the lesson that the teacher has set; 0 for no break.
    pub set_break: Option<u32>,
}

/// A card that a plan leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnpresentedCard {
    /// The index of the card, from 0.
    pub card: usize,
    /// Whether the card has a question, which takes a class a minute more.
    pub is_asking: bool,
}

/// The word of a plan before the cards that a presentation leaves out, counted from 1: `without-3-5q`.
const WITHOUT: &str = "without-";
/// The word of a plan before the minutes that the teacher has set: `min-20`.
const MINUTES: &str = "min-";
/// The word of a plan before the minutes of the break after a lesson: `break-15`.
const BREAK: &str = "break-";
/// The letter after the number of a card with a question.
const ASKING: char = 'q';

/// How many minutes a class needs to solve an exercise.
pub const EXERCISE_MINUTES: u32 = 8;
/// How many minutes the break of a long plan takes, if the teacher has set none.
pub const BREAK_MINUTES: u32 = 10;
/// A plan whose lessons take longer has a break.
const MAX_MINUTES_WITHOUT_BREAK: u32 = 90;
/// The most minutes that a teacher may set for a lesson or a break.
pub const MAX_SET_MINUTES: u32 = 600;

impl PlannedLesson {
    /// The lesson of the course with this id, or with the former id of its matter, presented.
    pub fn of_course(id: &str) -> Option<Self> {
        let known = course().find(|lesson| lesson.id == current_id(id))?;
        Some(Self { id: known.id.to_owned(), ..Self::default() })
    }

    /// Reads a part of a plan's text.
    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(':');
        let head = words.next()?;
        let mut own = head.splitn(4, '/');
        let id = own.next()?;
        let mut planned = match (own.next().and_then(|minutes| minutes.parse().ok()), own.next(), own.next())
        {
            (Some(minutes), Some(source), Some(title)) => {
                let own = OwnLesson { title: title.to_owned(), minutes, source: source.to_owned() };
                Self { id: id.to_owned(), own: Some(own), ..Self::default() }
            }
            _ => Self::of_course(id)?,
        };
        for word in words {
            let is_at_home = planned.is_at_home;
            planned = match word {
                "home" => planned.used(true, None),
                "exercise" => planned.used(is_at_home, Some(ExerciseUse::InClass)),
                "only" => planned.used(is_at_home, Some(ExerciseUse::LeftOut)),
                // The word of former plans, which are in links.
                "read" => planned.used(true, Some(ExerciseUse::LeftOut)),
                other => planned.with_word(other),
            };
        }
        Some(planned)
    }

    /// The lesson with a word of a plan's text that has numbers; another word changes nothing.
    fn with_word(mut self, word: &str) -> Self {
        let minutes = |prefix| {
            let minutes = word.strip_prefix(prefix)?.parse::<u32>().ok()?;
            Some(minutes.min(MAX_SET_MINUTES))
        };
        self.set_minutes = minutes(MINUTES).or(self.set_minutes);
        self.set_break = minutes(BREAK).or(self.set_break);
        let cards = word.strip_prefix(WITHOUT).unwrap_or_default().split('-');
        self.without.extend(cards.filter_map(UnpresentedCard::from_text));
        self
    }

    /// The lesson in class or at home, with its exercise elsewhere if one is given. An exercise of the class is
    /// homework if the lesson is read at home.
    #[must_use]
    pub fn used(self, is_at_home: bool, exercise: Option<ExerciseUse>) -> Self {
        let exercise = match exercise.unwrap_or(self.exercise) {
            ExerciseUse::InClass if is_at_home => ExerciseUse::Homework,
            exercise => exercise,
        };
        Self { is_at_home, exercise, ..self }
    }

    /// Whether a presentation leaves a card out, counted from 0.
    pub fn leaves_out(&self, card: usize) -> bool {
        self.without.iter().any(|left| left.card == card)
    }

    /// The first card, from 0, that is presented.
    pub fn first_card(&self) -> usize {
        (0..=self.without.len()).find(|card| !self.leaves_out(*card)).unwrap_or(0)
    }

    /// The name that people see.
    pub fn title(&self) -> &str {
        self.own.as_ref().map_or_else(|| title_of(&self.id), |own| own.title.as_str())
    }

    /// How many minutes the lesson takes with a class, which talks: more than for a reader alone. None at home.
    pub fn minutes(&self) -> u32 {
        if self.is_at_home {
            return 0;
        }
        let minutes = self.own.as_ref().map_or_else(|| class_minutes(&self.id), |own| own.minutes);
        let left_out: u32 = self.without.iter().map(|left| 1 + u32::from(left.is_asking)).sum();
        let minutes = self.set_minutes.unwrap_or_else(|| minutes.saturating_sub(left_out)).max(1);
        minutes.saturating_add(self.exercise_minutes())
    }

    /// The minutes of the exercise in class.
    fn exercise_minutes(&self) -> u32 {
        if self.exercise == ExerciseUse::InClass { EXERCISE_MINUTES } else { 0 }
    }

    /// The lesson with these minutes, its exercise among them; `None` for the minutes of its cards.
    #[must_use]
    pub fn with_minutes(self, minutes: Option<u32>) -> Self {
        let set = |minutes: u32| minutes.min(MAX_SET_MINUTES).saturating_sub(self.exercise_minutes()).max(1);
        Self { set_minutes: minutes.map(set), ..self }
    }
}

impl std::fmt::Display for PlannedLesson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.id)?;
        if let Some(OwnLesson { title, minutes, source }) = &self.own {
            // These letters part the text of a plan.
            write!(f, "/{minutes}/{source}/{}", title.replace([',', ':'], " "))?;
        }
        f.write_str(if self.is_at_home { ":home" } else { "" })?;
        f.write_str(match self.exercise {
            ExerciseUse::InClass => ":exercise",
            ExerciseUse::Homework => "",
            ExerciseUse::LeftOut => ":only",
        })?;
        for (place, left) in self.without.iter().enumerate() {
            let before = if place == 0 { format!(":{WITHOUT}") } else { "-".to_owned() };
            let asking = if left.is_asking { ASKING.to_string() } else { String::new() };
            write!(f, "{before}{}{asking}", left.card + 1)?;
        }
        for (word, minutes) in [(MINUTES, self.set_minutes), (BREAK, self.set_break)] {
            if let Some(minutes) = minutes {
                write!(f, ":{word}{minutes}")?;
            }
        }
        Ok(())
    }
}

impl UnpresentedCard {
    /// Reads `5`, or `5q` for a card with a question.
    fn from_text(text: &str) -> Option<Self> {
        let card = text.trim_end_matches(ASKING).parse::<usize>().ok()?.checked_sub(1)?;
        Some(Self { card, is_asking: text.ends_with(ASKING) })
    }
}

/// How many minutes a lesson takes with a class, without its exercise.
pub fn class_minutes(id: &str) -> u32 {
    match id {
        "training" => 18,
        "nvidia-smi" | "fragmentation" => 16,
        "tensor" | "what-to-change" => 15,
        "ranks" => 13,
        "workspaces" | "streams" => 11,
        _ => 9,
    }
}

/// What a class does while a lesson is presented, in words.
pub fn class_task(id: &str) -> &'static str {
    match id {
        "tensor" => {
            "The class answers before each figure is shown. Move the rows: the class says where the segment changes."
        }
        "nvidia-smi" => "The class says what nvidia-smi shows before each figure.",
        "training" => "The class says what the second step needs and what a weight costs. Move the batch.",
        "fragmentation" => "The class says how large the hole is, and votes before the request that fails.",
        "what-to-change" => {
            "The class reads an out-of-memory message aloud, number by number, and says what a list of losses keeps."
        }
        "ranks" => "The class says what a rank holds. Move the number of ranks.",
        _ => "The class answers before each figure is shown.",
    }
}

/// A way through the course with a class: the lessons that are presented, and those for home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The lessons, in their order.
    pub lessons: Vec<PlannedLesson>,
}

/// A plan that comes with the course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lecture {
    /// The name for programs.
    pub id: &'static str,
    /// The name that people see.
    pub title: &'static str,
    /// The plan, as [`Plan::from_text`] reads it.
    pub plan: &'static str,
}

/// The lectures, the shortest first.
pub const LECTURES: [Lecture; 3] = [
    Lecture {
        id: "forty-five-minutes",
        title: "A lecture of 45 minutes",
        plan: "tensor,nvidia-smi:home,fragmentation:exercise,what-to-change:home",
    },
    Lecture {
        id: "ninety-minutes",
        title: "A lecture of 90 minutes",
        plan: "tensor:exercise,nvidia-smi:home,training,fragmentation:exercise,what-to-change",
    },
    Lecture {
        id: "two-hours",
        title: "A course of two hours",
        plan: "tensor,nvidia-smi,training:exercise,fragmentation:exercise,what-to-change",
    },
];

impl Plan {
    /// The plan of a text such as `tensor,fragmentation:exercise,nvidia-smi:home`. After the id of a lesson, the
    /// word `home` has it read at home; `exercise` has its exercise solved in class, and `only` by nobody;
    /// `without-3-5q` presents it without the cards 3 and 5, the second of which asks a question. `min-20` gives
    /// it 20 minutes, and `break-15` has a break of 15 minutes after it. A lesson of a teacher's own is
    /// `id/minutes/source/title`. Lessons that are not known, and those that come again, are left out.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let mut plan = Self::default();
        for planned in text.split(',').filter_map(PlannedLesson::from_text) {
            if plan.lesson(&planned.id).is_none() {
                plan.lessons.push(planned);
            }
        }
        plan
    }

    /// The lesson with this id; `None` if the plan leaves it out.
    pub fn lesson(&self, id: &str) -> Option<&PlannedLesson> {
        self.lessons.iter().find(|planned| planned.id == id)
    }

    /// The plan with another use of a lesson; `None` leaves the lesson out. A lesson that is new in the plan comes
    /// after those that are before it in the course, and lessons of the teacher's own come last.
    #[must_use]
    pub fn with_lesson(&self, id: &str, planned: Option<PlannedLesson>) -> Self {
        let mut lessons = self.lessons.clone();
        let place = lessons.iter().position(|other| other.id == id);
        let of_course = |id: &str| course().position(|known| known.id == id).unwrap_or(usize::MAX);
        let is_before = |other: &PlannedLesson| of_course(&other.id) < of_course(id);
        match (place, planned) {
            (Some(place), Some(planned)) => lessons[place] = planned,
            (Some(place), None) => drop(lessons.remove(place)),
            (None, Some(planned)) => {
                let before = lessons.iter().rposition(is_before);
                lessons.insert(before.map_or(0, |before| before + 1), planned);
            }
            (None, None) => {}
        }
        Self { lessons }
    }

    /// The plan with a lesson moved to the place of the lesson before it, or after it.
    #[must_use]
    pub fn with_moved(&self, id: &str, is_later: bool) -> Self {
        let mut lessons = self.lessons.clone();
        let place = lessons.iter().position(|planned| planned.id == id);
        let other =
            place.and_then(|place| if is_later { place.checked_add(1) } else { place.checked_sub(1) });
        if let (Some(place), Some(other)) = (place, other.filter(|other| *other < lessons.len())) {
            lessons.swap(place, other);
        }
        Self { lessons }
    }

    /// The plan with a break of this many minutes after a lesson; 0 for no break. The other breaks stay.
    #[must_use]
    pub fn with_break(&self, id: &str, minutes: u32) -> Self {
        let mut plan = self.clone();
        let others = self.breaks();
        for planned in &mut plan.lessons {
            let kept = others.iter().find(|(after, _)| after.id == planned.id).map(|(_, minutes)| *minutes);
            planned.set_break = if planned.id == id { Some(minutes.min(MAX_SET_MINUTES)) } else { kept };
        }
        plan
    }

    /// The lessons that are presented, in order.
    pub fn presented(&self) -> impl Iterator<Item = &PlannedLesson> {
        self.lessons.iter().filter(|planned| !planned.is_at_home)
    }

    /// The minutes of the lessons that are presented.
    pub fn lesson_minutes(&self) -> u32 {
        self.lessons.iter().map(PlannedLesson::minutes).sum()
    }

    /// The breaks: the lesson before each, and its minutes. Without a break that the teacher has set, a long plan
    /// has one after the lesson that ends nearest to half of the time. No break follows the last lesson.
    pub fn breaks(&self) -> Vec<(&PlannedLesson, u32)> {
        let all = self.lesson_minutes();
        let mut end = 0;
        let ends = self.presented().map(|planned| {
            end += planned.minutes();
            (planned, end)
        });
        let inner: Vec<_> = ends.filter(|(_, end)| *end < all).collect();
        if inner.iter().any(|(planned, _)| planned.set_break.is_some()) {
            let set = inner.into_iter().filter_map(|(planned, _)| Some((planned, planned.set_break?)));
            return set.filter(|(_, minutes)| *minutes > 0).collect();
        }
        let inner = inner.into_iter().filter(|_| all > MAX_MINUTES_WITHOUT_BREAK);
        let half = inner.min_by_key(|(_, end)| end.abs_diff(all / 2));
        half.map(|(planned, _)| (planned, BREAK_MINUTES)).into_iter().collect()
    }

    /// The minutes of the break after a lesson; 0 without a break.
    pub fn break_after(&self, id: &str) -> u32 {
        self.breaks().iter().find(|(planned, _)| planned.id == id).map_or(0, |(_, minutes)| *minutes)
    }

    /// How many minutes the plan takes with its breaks: a tenth of the lessons' time is left because a class asks
    /// questions, and a vote takes longer than planned. A multiple of five.
    pub fn minutes(&self) -> u32 {
        let pause: u32 = self.breaks().iter().map(|(_, minutes)| minutes).sum();
        ((self.lesson_minutes() * 10).div_ceil(9) + pause).next_multiple_of(5)
    }

    /// The minute, from the beginning of the plan, at which a lesson is to end; `None` for a lesson that is not
    /// presented.
    pub fn end_of(&self, id: &str) -> Option<u32> {
        let place = self.presented().position(|planned| planned.id == id)?;
        let minutes = |planned: &PlannedLesson| planned.minutes() + self.break_after(&planned.id);
        let before: u32 = self.presented().take(place).map(minutes).sum();
        Some(before + self.presented().nth(place)?.minutes())
    }

    /// What the class does at home, in a sentence: exercises that it has not solved, and lessons. `None` without
    /// homework.
    pub fn homework_sentence(&self) -> Option<String> {
        let of = |is_at_home: bool, is_left_out: bool, [one, several]: [&str; 2], after: &str| {
            let wanted = self.lessons.iter().filter(|planned| {
                planned.is_at_home == is_at_home
                    && (planned.exercise == ExerciseUse::LeftOut) == is_left_out
                    && planned.exercise != ExerciseUse::InClass
            });
            let titles: Vec<String> = wanted.map(|planned| format!("\"{}\"", planned.title())).collect();
            let what = if titles.len() > 1 { several } else { one };
            (!titles.is_empty()).then(|| format!("{what} {}{after}", titles.join(", ")))
        };
        let all = [
            of(false, false, ["exercise of", "exercises of"], ""),
            of(true, false, ["lesson", "lessons"], ""),
            of(true, true, ["lesson", "lessons"], " without exercise"),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| format!("Homework: {}.", all.join("; ")))
    }
}

/// As [`Plan::from_text`] reads it.
impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, planned) in self.lessons.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{planned}")?;
        }
        Ok(())
    }
}
