//! The files of a class: graded one after the other, and shown as a table that can be sorted and saved.

mod answer;
mod links;
mod taking;

use std::rc::Rc;

use blockyard_figure::escaped;
use blockyard_lessons::{
    Exercise, GRADE_COLUMNS, GradeResult, GradeRow, grades_csv, inlines, student_name, with_code,
};
use blockyard_record::counted;
use leptos::ev;
use leptos::prelude::*;
use leptos::task::spawn_local;

use self::answer::{Graded, written};
use crate::browser;
use crate::effect::effect;
use crate::lessons::{ClassFile, ClassFileState, ClassSignals};
use crate::program::loading_sentence;
use crate::session::Session;
use crate::view::kit::{FilePicker, button, click, flag, on, select, text};
use crate::view::teach::teachers::cluster;

/// The section of the page for teachers that grades files.
pub(super) fn grading(session: Session) -> Vec<AnyView> {
    let class = session.lessons().class;
    let exercises = StoredValue::new_local(None);
    effect(move || {
        if class.queue.with(|queue| !queue.is_empty()) && !class.is_busy.get() {
            // The page has shown the new rows by then.
            let _ = browser::after_millis(0, move || grade_next(session, exercises));
        }
    });
    effect(move || {
        if class.given.with(|given| !given.is_empty()) {
            let _ = browser::after_millis(0, move || {
                let given = class.given.try_update(std::mem::take).unwrap_or_default();
                spawn_local(taking::take(class, given));
            });
        }
    });
    // The files may also answer a lesson that came with them.
    effect(move || {
        class.lessons.track();
        exercises.set_value(None);
    });
    let picker = FilePicker::new();
    let label = "Files of a class to be graded";
    let input = picker.field("class-files", label, false, move |files| class.hand_in(files));
    let options = Signal::derive(move || {
        let mut options = vec![(String::new(), "Each file: the lesson that its lines answer".to_owned())];
        class
            .lessons
            .with(|own| options.extend(own.iter().map(|lesson| (lesson.id.clone(), lesson.title.clone()))));
        options.extend(
            blockyard_lessons::course().map(|lesson| (lesson.id.to_owned(), lesson.title.to_owned())),
        );
        options
    });
    let chosen = text(move || class.lesson.get());
    vec![
        cluster(vec![
            button(
                "primary large",
                "grade-files",
                "Choose files to grade …",
                "As many as there are",
                picker.press(),
            ),
            input,
            select("grade-lesson", "The lesson of the files", options, chosen, move |id| {
                class.lesson.set(id);
            }),
        ]),
        own_lessons(class),
        progress(class),
        table(class),
    ]
}

/// The lessons of the teacher's own that the files may answer.
fn own_lessons(class: ClassSignals) -> AnyView {
    let words = text(move || {
        let titles =
            class.lessons.with(|own| own.iter().map(|lesson| lesson.title.clone()).collect::<Vec<_>>());
        format!("Graded too, by the file that you gave: {}.", titles.join(", "))
    });
    view! { <p role="status" data-testid="class-lessons" hidden=flag(move || class.lessons.with(Vec::is_empty))>{words}</p> }
        .into_any()
}

/// The progress of grading, and the buttons for the grades.
fn progress(class: ClassSignals) -> AnyView {
    let is_none = flag(move || class.files.with(Vec::is_empty));
    let words = text(move || {
        let (count, rows) = (class.files.with(Vec::len), class.rows());
        let of = |result: GradeResult| rows.iter().filter(|row| row.result == result).count();
        let (passed, failed) = (of(GradeResult::Passed), of(GradeResult::NotGraded));
        let failed = if failed > 0 { format!(", {failed} could not be graded") } else { String::new() };
        let loading = class.loading.get();
        let loading = loading.map(|bytes| format!(" {}", loading_sentence(bytes)));
        let (done, files, loading) = (rows.len(), counted(count, "file"), loading.unwrap_or_default());
        format!(
            "<progress max=\"{count}\" value=\"{done}\" aria-label=\"Graded files\"></progress> {done} of {files} graded, {passed} passed{failed}.{loading}"
        )
    });
    let save = click(move || {
        // With this mark a spreadsheet reads letters beyond ASCII correctly.
        let csv = format!("\u{feff}{}", untrack(|| grades_csv(&class.rows())));
        browser::download("grades.csv", &csv, "text/csv");
    });
    let stop = click(move || class.stop());
    // The file that runs keeps its row until its grade is known.
    let clear = click(move || {
        class.stop();
        if !class.is_busy.get_untracked() {
            class.files.set(Vec::new());
        }
    });
    let is_idle = flag(move || class.queue.with(Vec::is_empty));
    let tip = "The file that runs is graded; those that wait are not";
    let stop = vec![button("large", "stop-grading", "Stop", tip, stop)];
    let buttons = cluster(vec![
        button("large", "grades-csv", "Save as CSV", "The table as a file for a program for tables", save),
        view! { <span hidden=is_idle>{stop}</span> }.into_any(),
        button("large", "clear-grades", "Clear the table", "", clear),
    ]);
    view! {
        <div hidden=is_none>
            <p class="cluster" role="status" data-testid="grade-progress" inner_html=words></p>
            {buttons}
        </div>
    }
    .into_any()
}

/// The column by which the table is sorted, and whether the order is descending; `None` for the order of the
/// files.
type Order = Option<(usize, bool)>;

fn table(class: ClassSignals) -> AnyView {
    let order = RwSignal::new(None as Order);
    let sort = on(move |event: ev::MouseEvent| {
        let pressed = browser::target_of(&event).and_then(|target| target.closest("[data-column]").ok()?);
        let Some(column) = pressed.and_then(|button| button.get_attribute("data-column")?.parse().ok())
        else {
            return;
        };
        order.update(|order| {
            *order = match *order {
                Some((by, false)) if by == column => Some((column, true)),
                Some((by, true)) if by == column => None,
                _ => Some((column, false)),
            };
        });
        // The heads are drawn again, so the pressed head gets the focus back.
        let _ = browser::after_millis(0, move || browser::focus_first(&format!("[data-column='{column}']")));
    });
    // A row opens the student's lines, and closes them.
    let open = on(move |event: ev::MouseEvent| {
        let pressed = browser::target_of(&event).and_then(|target| target.closest("[data-file]").ok()?);
        let file = pressed.and_then(|button| button.get_attribute("data-file")?.parse::<usize>().ok());
        if let Some(file) = file {
            class.change(file, |file| file.is_open = !file.is_open);
            let _ = browser::after_millis(0, move || browser::focus_first(&format!("[data-file='{file}']")));
        }
    });
    let heads = text(move || heads(order.get()));
    let rows = text(move || class.files.with(|files| body(files, order.get())));
    view! {
        <div class="grades" role="region" aria-label="Grades" tabindex="0" hidden=flag(move || class.files.with(Vec::is_empty))>
            <table data-testid="grades">
                <thead inner_html=heads on:click=sort></thead>
                <tbody inner_html=rows on:click=open></tbody>
            </table>
        </div>
    }
    .into_any()
}

fn heads(order: Order) -> String {
    let head = |(column, name): (usize, &str)| {
        let (sorted, mark) = match order {
            Some((by, false)) if by == column => ("ascending", " ▲"),
            Some((by, true)) if by == column => ("descending", " ▼"),
            _ => ("none", ""),
        };
        format!(
            "<th scope=\"col\" aria-sort=\"{sorted}\"><button type=\"button\" class=\"link\" title=\"Sort by this column\" data-column=\"{column}\">{name}\
             <span aria-hidden=\"true\">{mark}</span></button></th>"
        )
    };
    format!("<tr>{}</tr>", GRADE_COLUMNS.into_iter().enumerate().map(head).collect::<String>())
}

/// The rows as HTML: a view of each cell would make the download larger.
fn body(files: &[ClassFile], order: Order) -> String {
    let mut rows: Vec<(usize, &ClassFile, [String; 7])> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let cells = cells(file);
        let key = |cells: &[String; 7], column: usize| cells.get(column).map(|cell| cell.to_lowercase());
        let place = match order {
            None => rows.len(),
            Some((column, false)) => {
                rows.partition_point(|(_, _, other)| key(other, column) <= key(&cells, column))
            }
            Some((column, true)) => {
                rows.partition_point(|(_, _, other)| key(other, column) >= key(&cells, column))
            }
        };
        rows.insert(place, (index, file, cells));
    }
    rows.iter().map(|(index, file, cells)| row(*index, file, cells)).collect()
}

fn cells(file: &ClassFile) -> [String; 7] {
    let word = match &file.state {
        ClassFileState::Graded(row) => return row.cells(),
        ClassFileState::Running => "runs …",
        ClassFileState::Waiting => "waits",
    };
    let mut cells = [const { String::new() }; 7];
    cells[0].clone_from(&file.name);
    cells[1] = student_name(&file.name);
    word.clone_into(&mut cells[3]);
    cells
}

fn row(index: usize, file: &ClassFile, cells: &[String; 7]) -> String {
    let [name, student, lesson, result, met] = [0, 1, 2, 3, 4].map(|place| escaped(&cells[place]));
    let [missed, message] = [5, 6].map(|place| inlines(&with_code(&cells[place])));
    let is = |result: GradeResult| cells.get(3).is_some_and(|cell| cell == result.word());
    let class = if is(GradeResult::Passed) {
        "is-right"
    } else if is(GradeResult::NotGraded) {
        "is-wrong"
    } else {
        ""
    };
    let name = if file.lines.is_empty() {
        name
    } else {
        format!(
            "<button type=\"button\" class=\"link\" title=\"The student's lines\" data-file=\"{index}\" aria-expanded=\"{}\">{name}</button>",
            file.is_open
        )
    };
    let same = if file.same_as.is_empty() {
        String::new()
    } else {
        format!(" <i>same lines as {}</i>", escaped(&file.same_as))
    };
    let lines = if file.is_open {
        format!("<tr><td colspan=\"7\"><pre class=\"code\">{}</pre></td></tr>", escaped(&file.lines))
    } else {
        String::new()
    };
    format!(
        "<tr class=\"{class}\"><th scope=\"row\">{name}</th><td>{student}</td><td>{lesson}</td><td>{result}</td>\
         <td>{met}</td><td>{missed}</td><td>{message}{same}</td></tr>{lines}"
    )
}

/// The exercises of all lessons, once the first file is graded.
type Exercises = StoredValue<Option<Rc<Vec<(String, Exercise)>>>, LocalStorage>;

/// Grades the file that has waited longest.
fn grade_next(session: Session, exercises: Exercises) {
    let class = session.lessons().class;
    // The teacher may have left the page; the files wait.
    let Some(known) = exercises.try_get_value().filter(|_| !class.is_busy.get_untracked()) else { return };
    let next = class.queue.with_untracked(|queue| queue.first().cloned());
    let Some((place, file)) = next else { return };
    class.queue.update(|queue| drop(queue.remove(0)));
    class.is_busy.set(true);
    class.set_state(place, ClassFileState::Running);
    let known = known.unwrap_or_else(|| Rc::new(answer::all_exercises(session)));
    let _ = exercises.try_set_value(Some(Rc::clone(&known)));
    let lesson = class.lesson.get_untracked();
    let name = class.files.with_untracked(|rows| rows.get(place).map(|row| row.name.clone()));
    spawn_local(async move {
        let Graded { row, lines, is_start } =
            answer::grade(class, (&name.unwrap_or_default(), &file), &lesson, &known).await;
        class.loading.set(None);
        let same = class.files.with_untracked(|files| same_as(files, &row, &lines));
        class.change(place, |file| {
            file.same_as = same.filter(|_| !is_start && row.met.is_some()).unwrap_or_default();
            file.state = ClassFileState::Graded(row);
            file.lines = lines;
        });
        class.is_busy.set(false);
    });
}

/// The student, or else the file, of a graded file of the same lesson that has the same lines. Blank lines and
/// spaces at the ends of lines do not count.
fn same_as(files: &[ClassFile], row: &GradeRow, lines: &str) -> Option<String> {
    let is_same = |file: &&ClassFile| {
        let ClassFileState::Graded(graded) = &file.state else { return false };
        graded.lesson == row.lesson && written(&file.lines).eq(written(lines))
    };
    let first = files.iter().filter(|_| written(lines).next().is_some()).find(is_same)?;
    let name = student_name(&first.name);
    Some(if name.is_empty() { first.name.clone() } else { name })
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn the_same_lines_of_a_lesson_are_found_whatever_blanks_they_have() {
        let file = |name: &str, lines: &str| ClassFile {
            name: name.to_owned(),
            state: ClassFileState::Graded(GradeRow::failed(name, "pools", "")),
            lines: lines.to_owned(),
            same_as: String::new(),
            is_open: false,
        };
        let files =
            [file("pools.workload", "free x"), file("anna_pools.workload", "free a\n\nb = alloc 1 MiB")];
        let same = |lesson: &str, lines: &str| same_as(&files, &GradeRow::failed("bo.py", lesson, ""), lines);
        assert_eq!(same("pools", "free a  \nb = alloc 1 MiB\n"), Some("anna".to_owned()));
        assert_eq!(same("pools", "free x"), Some("pools.workload".to_owned()));
        assert_eq!(
            [same("pools", "free b"), same("pools", " \n"), same("tensor", "free x")],
            [None, None, None]
        );
    }

    #[test]
    fn words_between_backticks_are_code() {
        assert_eq!(inlines(&with_code("the `assert` of line 3")), "the <code>assert</code> of line 3");
    }
}
