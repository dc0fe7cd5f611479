//! Practice: questions of all lessons with numbers drawn anew, those that are due again first. The question of a
//! lesson can be asked with other numbers, too.

use blockyard_figure::{StageForm, StageView};
use blockyard_lessons::{
    LessonQuestion, PlayedLesson, Practice, PracticeCount, PracticeQuestion, card_stage, course,
    drawn_question, has_other_numbers, lessons, plain,
};
use blockyard_record::counted;
use leptos::prelude::*;

use crate::browser;
use crate::lessons::{GivenAnswer, OpenLesson};
use crate::navigation::{CardPlace, Place};
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::view::kit::{button, click, flag, text};
use crate::view::learn::lesson::{answer_field, answer_sentence, stopped};
use crate::view::learn::lessons::place_link;
use crate::view::prose;

/// A question of a lesson that was played with drawn values.
#[derive(Clone, Debug, PartialEq)]
struct Drawn {
    lesson: PtrEq<PlayedLesson>,
    card: usize,
}

impl Drawn {
    fn new(text: &str, card: usize, shown: Option<&LessonQuestion>) -> Option<Self> {
        let lesson = PtrEq::new(drawn_question(text, card, browser::random(), shown)?);
        Some(Self { lesson, card })
    }

    fn question(&self) -> Option<&LessonQuestion> {
        self.lesson.cards.get(self.card)?.question.as_ref()
    }
}

/// The practice of a reader; a handle that is copied freely.
#[derive(Clone, Copy)]
struct Practicing {
    session: Session,
    questions: StoredValue<Vec<PracticeQuestion>>,
    practice: RwSignal<Practice>,
    /// The shown question: its place in the course, and its numbers.
    asked: RwSignal<Option<(PracticeQuestion, Drawn)>, LocalStorage>,
    is_answered: RwSignal<bool>,
    /// The questions that were asked last, which wait for others.
    recent: StoredValue<Vec<PracticeQuestion>>,
}

/// The width for which a figure is drawn, on a phone and elsewhere.
const NARROW_PX: f32 = 340.0;
const WIDE_PX: f32 = 640.0;
/// The height that a figure grows to.
const HIGH_PX: f32 = 300.0;

/// So many other questions are between a question that was answered wrong and the same question again.
const BETWEEN: usize = 3;

pub(crate) fn practice(session: Session) -> AnyView {
    let practicing = Practicing {
        session,
        questions: StoredValue::new(PracticeQuestion::all(lessons())),
        practice: RwSignal::new(session.lessons().recall_practice()),
        asked: RwSignal::new_local(None),
        is_answered: RwSignal::new(false),
        recent: StoredValue::new(Vec::new()),
    };
    practicing.ask_next();
    let sums = text(move || summary(practicing.count(None)));
    let chapters = course().map(|lesson| {
        let line = text(move || chapter_line(practicing.count(Some(lesson.id))));
        let place = Place::Lesson { id: lesson.id.to_owned(), card: CardPlace::FIRST };
        view! { <li>{place_link(session, place, lesson.title.to_owned())}{line}</li> }.into_any()
    });
    view! {
        <main class="page">
            <h1>"Practice"</h1>
            <p class="lead">
                "Questions about what you have read come first, most of them with new numbers each time. Answers in chapters count, too. A question that you answer right comes back after a day, then after three, seven and 21 days. This is remembered on this machine alone."
            </p>
            <p role="status" data-testid="practice-sums">{sums}</p>
            {move || practicing.question()}
            <h2>"What you know"</h2>
            <ul class="bullets" data-testid="practice-chapters">{chapters.collect::<Vec<_>>()}</ul>
        </main>
    }
    .into_any()
}

/// What was done, and what comes next. Nothing that is not there is counted.
fn summary(count: PracticeCount) -> String {
    let done = done_text(count).map(|done| format!("So far: {done}. ")).unwrap_or_default();
    let next = match (count.due, count.new) {
        (0, 0) => "Nothing is due today, so these questions come before their day.".to_owned(),
        (0, _) => "A new question comes next.".to_owned(),
        (due, _) => format!("Next: {} that {} due again.", counted(due, "question"), is_or_are(due)),
    };
    done + &next
}

fn is_or_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// `12 questions answered, 4 of them mastered`; `None` before the first answer.
fn done_text(count: PracticeCount) -> Option<String> {
    let done = count.all.saturating_sub(count.new);
    let mastered = match count.mastered {
        0 => String::new(),
        mastered => format!(", {mastered} of them mastered"),
    };
    (done > 0).then(|| format!("{} answered{mastered}", counted(done, "question")))
}

fn chapter_line(count: PracticeCount) -> String {
    let due = match count.due {
        0 => String::new(),
        due => format!(", {due} due again"),
    };
    done_text(count).map(|done| format!(": {done}{due}")).unwrap_or_default()
}

impl Practicing {
    /// How the reader stands with the questions of a lesson, or of all. Reads signals.
    fn count(self, lesson: Option<&str>) -> PracticeCount {
        self.questions.with_value(|questions| {
            let of_lesson =
                questions.iter().filter(|question| lesson.is_none_or(|lesson| lesson == question.lesson));
            self.practice.with(|practice| practice.count(of_lesson, browser::today()))
        })
    }

    fn ask_next(self) {
        let day_and_seed = (browser::today(), browser::random());
        let recent = self.recent.get_value();
        let next = self.questions.with_value(|questions| {
            self.practice.with_untracked(|practice| {
                practice.next(questions, &recent, |question| self.has_read(question), day_and_seed)
            })
        });
        self.recent.update_value(|recent| {
            recent.extend(next.clone());
            recent.drain(..recent.len().saturating_sub(BETWEEN));
        });
        self.ask(next, None);
    }

    fn has_read(self, question: &PracticeQuestion) -> bool {
        self.session.lessons().has_seen(&question.lesson, question.card)
    }

    /// Asks a question with numbers under which it is another than `shown`.
    fn ask(self, question: Option<PracticeQuestion>, shown: Option<&LessonQuestion>) {
        let asked = question.and_then(|question| {
            let file = lessons().iter().find(|file| file.id == question.lesson)?;
            let drawn = Drawn::new(file.text, question.card, shown)?;
            Some((question, drawn))
        });
        self.is_answered.set(false);
        self.asked.set(asked);
    }

    /// The shown question with the buttons that come after its answer. Reads signals.
    fn question(self) -> Option<AnyView> {
        let (place, drawn) = self.asked.get()?;
        let title = drawn.lesson.title.clone();
        let file = lessons().iter().find(|file| file.id == place.lesson)?;
        let has_others =
            drawn.question().is_some_and(|question| has_other_numbers(file.text, place.card, question));
        let answered = {
            let place = place.clone();
            move |is_right| {
                self.practice.update(|practice| practice.answer(&place, is_right, browser::today()));
                self.practice.with_untracked(|practice| self.session.lessons().remember_practice(practice));
                self.is_answered.set(true);
            }
        };
        let focus = || {
            let _ = browser::after_millis(0, || browser::focus_first("[data-testid=practice-title]"));
        };
        let next = click(move || {
            self.ask_next();
            focus();
        });
        let card = Place::Lesson { id: place.lesson.clone(), card: CardPlace::At(place.card) };
        let (shown, again) = (drawn.clone(), place.clone());
        let another = click(move || {
            self.ask(Some(again.clone()), shown.question());
            focus();
        });
        let unread = (!self.has_read(&place)).then_some("You have not read this part of the chapter yet.");
        let waits = flag(move || !self.is_answered.get());
        let view = view! {
            <section class="practice" aria-labelledby="practice-title">
                <h2 id="practice-title" data-testid="practice-title" tabindex="-1">{title}</h2>
                {unread.map(|words| view! { <p class="quiet">{words}</p> })}
                {question_view(self.session, drawn, answered)}
                <p class="cluster" hidden=waits>
                    {button("primary large", "practice-next", "Next question", "", next)}
                    <span hidden=!has_others>
                        {button("large", "another", "Another question like this", "", another)}
                    </span>
                    {place_link(self.session, card, "The card of the lesson".to_owned())}
                </p>
            </section>
        };
        Some(view.into_any())
    }
}

/// A button that asks the question of a card with other numbers, below the answer; nothing where the question
/// has no others.
pub(crate) fn another(session: Session, lesson: &OpenLesson, card: usize) -> Option<AnyView> {
    let question = lesson.cards.get(card)?.question.clone()?;
    if !has_other_numbers(&lesson.text, card, &question) {
        return None;
    }
    let (text, id) = (lesson.text.clone(), lesson.id.clone());
    let drawn = RwSignal::new_local(None::<Drawn>);
    let draw = click(move || {
        let next = drawn.with_untracked(|shown| {
            let shown = shown.as_ref().and_then(Drawn::question).unwrap_or(&question);
            Drawn::new(&text, card, Some(shown))
        });
        if next.is_some() {
            drawn.set(next);
        }
    });
    let answered = move |is_right| session.lessons().add_to_practice(&id, card, is_right);
    let shown = move || drawn.get().map(|drawn| question_view(session, drawn, answered.clone()));
    let view = view! {
        <p>{button("link", "another", "Another question like this", "", draw)}</p>
        {shown}
    };
    Some(view.into_any())
}

/// A question with its figure, the field for the answer, and the allocator's answer. `answered` gets to know
/// whether the answer was right; an answer that was only shown is not.
fn question_view(session: Session, drawn: Drawn, answered: impl Fn(bool) + 'static) -> AnyView {
    let Some(question) = drawn.question().cloned() else { return ().into_any() };
    let (given, is_done) = (RwSignal::new(None::<GivenAnswer>), RwSignal::new(false));
    let problem = RwSignal::new(String::new());
    let asked = StoredValue::new(question.clone());
    let end = StoredValue::new_local(move |is_right: bool| {
        is_done.set(true);
        problem.set(String::new());
        answered(is_right);
        let _ = browser::after_millis(0, || browser::focus_first("[data-testid=drawn-answer]"));
    });
    let answer = StoredValue::new_local(move |raw: &str| {
        match asked.with_value(|question| GivenAnswer::new(question, raw)) {
            Ok(new) => {
                let is_right = new.is_right;
                given.set(Some(new));
                end.with_value(|end| end(is_right));
            }
            Err(why) => problem.set(why),
        }
    });
    let show = click(move || end.with_value(|end| end(false)));
    let result = move || {
        if !is_done.get() {
            return view! { <p class="error" role="status">{problem.get()}</p> }.into_any();
        }
        asked.with_value(|question| {
            let is_right = given.with(|given| given.as_ref().is_some_and(|given| given.is_right));
            let words = given.with(|given| match given {
                Some(given) => answer_sentence(question, given),
                None => format!("The answer is: {}", stopped(&question.right)),
            });
            let class = if is_right { "verdict is-right" } else { "verdict is-wrong" };
            let because = prose::inlines(session, &question.because);
            view! { <p class=class role="status" data-testid="drawn-answer" tabindex="-1">{words}" "{because}</p> }
                .into_any()
        })
    };
    let figure = text(move || {
        let (appearance, Drawn { lesson, card }) = (session.appearance(), &drawn);
        let Ok(Some((stage, words))) = card_stage(lesson, *card, !is_done.get()) else {
            return String::new();
        };
        // The figure does not stay in sight beside a text, so that it may be as high as on a wide screen.
        let width_px = if appearance.is_narrow.get() { NARROW_PX } else { WIDE_PX };
        let (form, least_height_px) = (StageForm::Compact, HIGH_PX);
        let scene = stage.scene(&StageView { form, least_height_px, ..StageView::default() }, width_px);
        let title = lesson.cards.get(*card).map(|card| plain(&card.title)).unwrap_or_default();
        scene.to_svg(appearance.shown_theme(), &title, &words)
    });
    let field = answer_field(&question, given, flag(move || is_done.get()), answer);
    view! {
        <div class="predict" data-testid="drawn-question">
            <p>{prose::inlines(session, &question.text)}</p>
            <div class="drawn" inner_html=figure></div>
            {field}
            {result}
            <p hidden=flag(move || is_done.get())>{button("link", "drawn-reveal", "Show me", "", show)}</p>
        </div>
    }
    .into_any()
}
