//! `blockyard lesson`: the course as a list, one lesson as text, class sheets, and grades of answers.

mod answers;
mod handout;
mod mutants;
#[cfg(feature = "python")]
mod program;

#[cfg(feature = "python")]
pub(crate) use program::with_requests;

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use blockyard_figure::{breakdown_text, map_text};
use blockyard_lessons::{
    Exercise, ExerciseLanguage, Handout, Inline, Lesson, LessonQuestion, PARTS, PlayedCard, PlayedLesson,
    RightAnswers, TextBlock, current_id, lessons, plain,
};
use blockyard_record::MemoryState;
use clap::Args;

use crate::exit_status::ExitStatus;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct LessonOptions {
    /// The id of a lesson (`reserved`) or a lesson's file; several for a common handout.
    #[arg(value_name = "LESSON")]
    pub(crate) lessons: Vec<String>,
    /// Grade answers to the lesson's exercise: each the whole workload or program, `-` for standard input.
    /// Several files, such as those of a class, have a line each. The exit status is 0 if all pass, 1 if one
    /// does not, 2 if one cannot be graded.
    #[arg(long, value_name = "SOLUTION", requires = "lessons", num_args = 1..)]
    pub(crate) check: Vec<PathBuf>,
    /// Write the grades as a table, a row for each file: the table of the page for teachers. `-` for standard
    /// output.
    #[arg(long, value_name = "GRADES.csv", requires = "check")]
    pub(crate) csv: Option<PathBuf>,
    /// Print the workload or the Python program that the exercise begins with, to be saved and changed.
    #[arg(long, requires = "lessons", conflicts_with = "check")]
    pub(crate) start: bool,
    /// Try small changes of the start and of the solution as answers, and print which pass: no line, a line left
    /// out, smaller sizes, a program on the CPU, an expanded number. For authors: a change that passes is a
    /// shortcut, or another right answer. The exit status is 1 if one passes.
    #[arg(long, requires = "lessons", conflicts_with_all = ["check", "start"])]
    pub(crate) mutate: bool,
    /// Write a printable handout of the lessons: one HTML file with the figures as SVG.
    #[arg(long, value_name = "OUT.html", requires = "lessons", conflicts_with_all = ["check", "start"])]
    pub(crate) handout: Option<PathBuf>,
    /// Write the answers into another file, and the handout without them.
    #[arg(long, value_name = "ANSWERS.html", requires = "handout")]
    pub(crate) answers: Option<PathBuf>,
    /// Write the questions and exercises alone into another file: one page or two a lesson.
    #[arg(long, value_name = "QUESTIONS.html", requires = "handout")]
    pub(crate) questions: Option<PathBuf>,
    /// Write the answer key into another file: a page a lesson.
    #[arg(long, value_name = "KEY.html", requires = "handout")]
    pub(crate) key: Option<PathBuf>,
}

#[cfg(not(feature = "python"))]
const NO_PYTHON: &str =
    "the exercise is a Python program, and this command was built without its Python interpreter";

/// The text of a lesson as it is: this command cannot run the program of its cards.
#[cfg(not(feature = "python"))]
#[expect(clippy::unnecessary_wraps, reason = "with Python, a program can fail")]
pub(crate) fn with_requests(_: &str, text: String) -> anyhow::Result<String> {
    Ok(text)
}

/// How wide text is in the terminal, in characters.
const WIDTH: usize = 96;

pub(crate) fn lesson(options: &LessonOptions) -> anyhow::Result<ExitCode> {
    if options.lessons.is_empty() {
        list()?;
        return Ok(ExitCode::SUCCESS);
    }
    let lessons = options.lessons.iter().map(|name| open(name)).collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(path) = &options.handout {
        return write_handout(&lessons, path, options).map(|()| ExitCode::SUCCESS);
    }
    let [lesson] = lessons.as_slice() else {
        anyhow::bail!("name one lesson, or write several into one file with --handout FILE");
    };
    if options.start {
        let mut out = output::stdout();
        out.write_all(exercise(lesson)?.start().as_bytes())?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    if options.mutate {
        return mutants::try_all(exercise(lesson)?);
    }
    match (options.check.as_slice(), &options.csv) {
        ([], _) => {}
        ([path], None) => return check(exercise(lesson)?, path),
        (paths, csv) => return answers::check_all(&lesson.id, exercise(lesson)?, paths, csv.as_deref()),
    }
    print(lesson)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the sheets of all lessons, and then their answers, into one file or into two; questions alone and
/// the answer key into separate files.
fn write_handout(lessons: &[PlayedLesson], path: &Path, options: &LessonOptions) -> anyhow::Result<()> {
    let papers = lessons.iter().map(blockyard_lessons::handout).collect::<Result<Vec<_>, _>>()?;
    let titles: Vec<&str> = lessons.iter().map(|lesson| lesson.title.as_str()).collect();
    let title = titles.join(" · ");
    let write = |path: &Path, content: &str| {
        let html = handout::document(&title, content);
        std::fs::write(path, html).with_context(|| path.display().to_string())?;
        eprintln!("{}", path.display());
        anyhow::Ok(())
    };
    let all = |part: fn(&Handout) -> &str| papers.iter().map(part).collect::<String>();
    let (cards, answers) = (all(|paper| &paper.cards), all(|paper| &paper.answers));
    match &options.answers {
        Some(path_of_answers) => {
            write(path, &cards)?;
            write(path_of_answers, &answers)?;
        }
        None => write(path, &(cards + &answers))?,
    }
    if let Some(path) = &options.questions {
        write(path, &format!("<div class=\"asked\">\n{}</div>\n", all(|paper| &paper.asked)))?;
    }
    if let Some(path) = &options.key {
        write(path, &all(|paper| &paper.key))?;
    }
    Ok(())
}

/// The lesson with this id, or in this file, once it has run.
fn open(name: &str) -> anyhow::Result<PlayedLesson> {
    let path = Path::new(name);
    let ours = lessons().iter().find(|file| file.id == current_id(name) && !path.exists());
    let text = if let Some(file) = ours {
        file.text.to_owned()
    } else {
        let ids: Vec<&str> = lessons().iter().map(|file| file.id).collect();
        let what = || format!("{name} (neither a lesson's file nor one of the lessons {})", ids.join(", "));
        let text = String::from_utf8(output::read(path).with_context(what)?);
        with_requests(name, text.map_err(|_| anyhow!("{name}: not UTF-8"))?)?
    };
    let lesson = Lesson::parse(&text).and_then(|lesson| lesson.play());
    let lesson = lesson.map_err(|error| anyhow!("{name}: {error}"))?;
    for note in &lesson.notes {
        eprintln!("note: {name}: {note}");
    }
    Ok(lesson)
}

fn exercise(lesson: &PlayedLesson) -> anyhow::Result<&Exercise> {
    let mut exercises = lesson.cards.iter().filter_map(|card| card.exercise.as_ref());
    exercises.next().ok_or_else(|| anyhow!("{} has no exercise", lesson.id))
}

fn list() -> anyhow::Result<()> {
    let mut out = output::stdout();
    let mut files = lessons().iter().zip(1_u32..);
    for (index, part) in PARTS.iter().enumerate() {
        output::line(&mut out, &format!("{}{}", if index > 0 { "\n" } else { "" }, part.title))?;
        for (file, number) in files.by_ref().take(part.lessons.len()) {
            let lesson = Lesson::parse(file.text).map_err(|error| anyhow!("{}: {error}", file.id))?;
            let minutes = lesson.minutes().map(|minutes| format!(" ({minutes} min)")).unwrap_or_default();
            let text = format!("{number:>2}. {:<15} {}{minutes}", lesson.id(), lesson.title());
            output::line(&mut out, &text)?;
            output::line(&mut out, &format!("    {:<15} {}", "", lesson.summary()))?;
        }
    }
    output::line(&mut out, "\nblockyard lesson ID reads one, --start and --check are for its exercise.")?;
    out.flush()?;
    Ok(())
}

fn check(exercise: &Exercise, path: &Path) -> anyhow::Result<ExitCode> {
    let name = path.display().to_string();
    let text = String::from_utf8(output::read(path)?).map_err(|_| anyhow!("{name}: not UTF-8"))?;
    let text = exercise.whole_answer(&text).map_err(|error| anyhow!("{name}: {error}"))?;
    let grade = match exercise.language {
        ExerciseLanguage::Workload => exercise.grade(&text).map_err(|error| anyhow!("{name}: {error}"))?,
        #[cfg(feature = "python")]
        ExerciseLanguage::Python => program::grade(exercise, &name, &text, program::Output::Shown)?,
        #[cfg(not(feature = "python"))]
        ExerciseLanguage::Python => anyhow::bail!("{name}: {NO_PYTHON}"),
    };
    let mut out = output::stdout();
    for goal in &grade.goals {
        let mark = match (goal.is_met, goal.is_known) {
            (true, _) => "met   ",
            (false, true) => "missed",
            (false, false) => "open  ",
        };
        let reason = goal.reason().map(|reason| format!(": {reason}")).unwrap_or_default();
        output::line(&mut out, &format!("{mark} {}{reason}", goal.goal))?;
    }
    output::line(&mut out, if grade.is_passed { "Passed." } else { "Not yet." })?;
    out.flush()?;
    Ok(if grade.is_passed { ExitStatus::Positive } else { ExitStatus::Negative }.into())
}

fn print(lesson: &PlayedLesson) -> anyhow::Result<()> {
    let mut out = output::stdout();
    output::line(&mut out, &format!("{}\n{}\n", lesson.title, lesson.summary))?;
    for (index, card) in lesson.cards.iter().enumerate() {
        let text = card_text(lesson, card, index)?;
        output::line(&mut out, &text)?;
    }
    out.flush()?;
    Ok(())
}

fn card_text(lesson: &PlayedLesson, card: &PlayedCard, index: usize) -> anyhow::Result<String> {
    let mut text = format!("== {}. {} ==\n\n", index + 1, plain(&card.title));
    if let Some(question) = &card.question {
        text.push_str(&wrapped("? ", &plain(&question.text)));
        text.push_str(&choices(question));
        text.push('\n');
    }
    if card.exercise.is_none() {
        let (state, recording) = moment(lesson, card, card.steps.end)?;
        text.push_str(&map_text(&state, recording));
        text.push_str(&wrapped("", &breakdown_text(&state, recording)));
        text.push('\n');
    }
    if let Some(question) = &card.question {
        let stop = if question.right.ends_with(['.', '?', '!']) { "" } else { "." };
        let answer = format!("{}{stop} {}", question.right, plain(&question.because));
        let _ = writeln!(text, "{}", wrapped("! ", &answer));
    }
    for block in &card.body {
        match block {
            TextBlock::Paragraph(words) => text.push_str(&wrapped("", &plain(words))),
            TextBlock::List(items) => {
                for item in items {
                    text.push_str(&wrapped("- ", &plain(item)));
                }
            }
            TextBlock::Code { text: code, .. } => code.lines().for_each(|line| {
                let _ = writeln!(text, "    {line}");
            }),
        }
        text.push('\n');
    }
    if let Some(exercise) = &card.exercise {
        text.push_str(&exercise_text(&lesson.id, exercise));
    }
    Ok(text)
}

fn exercise_text(id: &str, exercise: &Exercise) -> String {
    let mut text = format!("The device has {}", exercise.capacity);
    if !exercise.conf.is_empty() {
        let _ = write!(text, ", the settings are {}", exercise.conf);
    }
    text.push_str(".\n\n");
    for line in exercise.start().lines() {
        let _ = writeln!(text, "    {line}");
    }
    text.push_str("\nGoals:\n");
    for goal in &exercise.goals {
        text.push_str(&wrapped("- ", &goal.to_string()));
    }
    text.push_str("\nHints:\n");
    for hint in &exercise.hints {
        text.push_str(&wrapped("- ", &plain(hint)));
    }
    let file = match exercise.language {
        ExerciseLanguage::Workload => "mine.workload",
        ExerciseLanguage::Python => "mine.py",
    };
    let _ = writeln!(text, "\nblockyard lesson {id} --start > {file}; blockyard lesson {id} --check {file}");
    text
}

/// The memory after this many steps of a card's run, and the recording that names its blocks.
fn moment<'a>(
    lesson: &'a PlayedLesson,
    card: &PlayedCard,
    step: usize,
) -> anyhow::Result<(MemoryState, &'a blockyard_record::Recording)> {
    let run = lesson.runs.get(card.run).ok_or_else(|| anyhow!("a card without a run"))?;
    let last = step.checked_sub(1).and_then(|step| run.recording.step(step));
    let state = run.recording.state_at(last.map_or(0, |step| step.end))?;
    Ok((state, &run.recording))
}

fn choices(question: &LessonQuestion) -> String {
    let texts: Vec<&[Inline]> = match &question.answers {
        RightAnswers::Choices(choices) => choices.iter().map(|choice| choice.text.as_slice()).collect(),
        RightAnswers::Bytes(_) | RightAnswers::Count(_) => Vec::new(),
    };
    let lines =
        texts.iter().enumerate().map(|(index, text)| wrapped(&format!("  {}) ", index + 1), &plain(text)));
    lines.collect()
}

/// The text in lines of at most [`WIDTH`] characters, the first after `mark` and the others indented as far.
fn wrapped(mark: &str, text: &str) -> String {
    let indent = mark.chars().count();
    let mut out = mark.to_owned();
    let mut column = indent;
    for (index, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > WIDTH {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if index > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_behind_its_mark() {
        let text = wrapped("- ", &"word ".repeat(40));
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(
            text.starts_with("- word word") && text.lines().nth(1).unwrap().starts_with("  word"),
            "{text}"
        );
        assert_eq!(text.matches("word").count(), 40);
    }
}
