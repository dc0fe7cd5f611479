//! Parts of the page whose code is fetched when they are shown for the first time.
//!
//! With the feature `split`, which `cargo xtask build` uses, the functions that [`part!`] marks are in
//! separate WebAssembly modules, which share the page's memory. Without the feature, as in tests, they are
//! ordinary functions.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use blockyard_worker::questions::LabReply;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsValue;

use crate::files::Samples;
use crate::lab::RunOrigin;
use crate::lessons::LessonModule;
use crate::navigation::TeachersPage;
use crate::session::Session;
use crate::view;
use crate::view::export;
use crate::view::kit::{button, click};
use crate::workers::{self, OnRead};

/// The code of a part could not be fetched, because the network or the server failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadError;

#[cfg(feature = "split")]
impl From<wasm_split_helpers::SplitLoaderError> for LoadError {
    fn from(_: wasm_split_helpers::SplitLoaderError) -> Self {
        Self
    }
}

/// A view whose code lies in the module `$module`: `$load` fetches the module, `$show` makes the view.
macro_rules! part {
    ($(#[$doc:meta])* $part:ident in $module:ident: $load:ident, $show:ident($($argument:ident: $of:ty),*) => $body:expr) => {
        $(#[$doc])*
        pub(crate) fn $part($($argument: $of),*) -> AnyView {
            show_when_loaded($load, move || $show($($argument.clone()),*))
        }

        #[cfg(feature = "split")]
        #[wasm_split_helpers::wasm_split($module, fallible, preload($load))]
        fn $show($($argument: $of),*) -> Result<AnyView, LoadError> {
            Ok($body)
        }

        #[cfg(not(feature = "split"))]
        async fn $show($($argument: $of),*) -> Result<AnyView, LoadError> {
            Ok($body)
        }

        #[cfg(not(feature = "split"))]
        async fn $load() -> Result<(), LoadError> {
            Ok(())
        }
    };
}

part!(
    /// The figures beside the text and the numbers.
    workbench in workbench: load_workbench, show_workbench(session: Session, samples: Samples) => view::workbench::workbench(session, samples)
);
part!(
    /// The lesson at its card.
    lesson in lessons: load_lesson, show_lesson(session: Session) => view::learn::lesson::lesson(session)
);
part!(
    /// The list of lessons; if `ids` has any, only the lessons with these ids.
    lessons in lessons: load_lessons, show_lessons(session: Session, ids: String) => view::learn::lessons::listed(session, &ids)
);
part!(
    /// The glossary.
    words in lessons: load_words, show_words(session: Session, entry: String) => view::learn::lessons::words(session, entry)
);
part!(
    /// Questions of all lessons, mixed.
    practice in lessons: load_practice, show_practice(session: Session) => view::learn::practice::practice(session)
);
part!(
    /// A page for teachers.
    teachers in teach: load_teachers, show_teachers(session: Session, page: TeachersPage) => view::teach::teachers::teachers(session, page)
);
part!(
    /// The editor of a lesson.
    make_lesson in teach: load_make_lesson, show_make_lesson(session: Session) => view::teach::make_lesson::make_lesson(session)
);
part!(
    /// Lessons to be printed.
    handout in teach: load_handout, show_handout(session: Session, lessons: String) => view::teach::handout::handout(session, &lessons)
);
part!(
    /// The texts of the help.
    help in workbench: load_help, show_help(session: Session, help: view::Help) => view::help_content(session, help)
);
part!(
    /// The program with its output and its memory.
    program in program: load_program, show_program(session: Session) => view::program::program(session)
);
part!(
    /// Memory over time while a long file is read.
    growing_timeline in workbench: load_growing_timeline, show_growing_timeline(session: Session) => view::growing_timeline(session)
);

/// A function whose code lies in the module `$module`. Its future is ready at once if the module is loaded.
macro_rules! function {
    ($(#[$doc:meta])* $name:ident in $module:ident($($argument:ident: $of:ty),*) -> $output:ty => $body:expr) => {
        $(#[$doc])*
        #[cfg(feature = "split")]
        #[wasm_split_helpers::wasm_split($module, fallible)]
        fn $name($($argument: $of),*) -> Result<$output, LoadError> {
            Ok($body)
        }

        #[cfg(not(feature = "split"))]
        async fn $name($($argument: $of),*) -> Result<$output, LoadError> {
            Ok($body)
        }
    };
}

function!(
    /// The texts of the lessons, and the code that plays them.
    lesson_module in lessons() -> LessonModule => LessonModule::get()
);
function!(
    /// Asks the lab's question. A file can be opened before the workbench's module is loaded.
    lab_question in workbench(session: Session) -> () => session.lab().ask_here()
);
function!(
    /// Reads the reply of a worker to a question of the lab.
    lab_reply in workbench(bytes: Vec<u8>) -> Result<LabReply, postcard::Error> => postcard::from_bytes(&bytes)
);
function!(
    /// Follows the programs that run beside the page.
    programs in workbench(session: Session, name: String) -> () => session.live().follow(name)
);
function!(
    /// Saves the figure as an SVG or a PNG file.
    figure_file in workbench(session: Session, is_svg: bool) -> () => export::save_figure(session, is_svg)
);
function!(
    /// Copies the verdict as plain text.
    summary in workbench(session: Session) -> () => view::workbench::lab::copy_summary(session)
);
function!(
    /// The run that a report is about; a program's run becomes a snapshot.
    report_source in workbench(session: Session) -> Option<RunOrigin> => session.lab().run_source()
);

/// Calls `then` with the output of a future: now if it is ready, or else as soon as it is. Returns false if
/// `then` has not been called yet.
fn when_ready<T: 'static>(future: impl Future<Output = T> + 'static, then: impl FnOnce(T) + 'static) -> bool {
    let mut future = Box::pin(future);
    if let Some(output) = poll_once(future.as_mut()) {
        then(output);
        return true;
    }
    spawn_local(async move { then(future.await) });
    false
}

/// Calls `then` with what the lessons' module has: at once if the module is loaded, else as soon as it is
/// fetched. Returns false if `then` has not been called yet.
pub(crate) fn with_lessons(then: impl FnOnce(Result<LessonModule, LoadError>) + 'static) -> bool {
    when_ready(lesson_module(), then)
}

/// Asks the question of the lab that is shown, at once if the code is loaded. Without a network neither the
/// question's code nor the workbench can be loaded, so the question is dropped.
pub(crate) fn ask_lab(session: Session) {
    when_ready(lab_question(session), drop);
}

/// Calls `then` with the reply in a worker's message, or with why there is none. The code that reads answers is
/// where they are shown.
pub(crate) fn read_lab_reply(reply: JsValue, then: OnRead<LabReply>) {
    when_ready(lab_reply(workers::bytes(reply)), |read| {
        then(match read {
            Ok(reply) => reply.map_err(|error| error.to_string()),
            Err(_) => Err("the part of the page that reads answers could not be loaded".to_owned()),
        });
    });
}

/// Follows the programs that run beside the page. Without the command that serves it, the page has no code.
pub(crate) fn follow_program(session: Session, name: String) {
    when_ready(programs(session, name), drop);
}

/// Saves the figure as an SVG or a PNG file, at once if the code is loaded, else as soon as it is fetched.
pub(crate) fn save_figure(session: Session, is_svg: bool) {
    when_ready(figure_file(session, is_svg), move |saved| {
        if saved.is_err() {
            session.show_error("The part of the page that writes figures could not be loaded.");
        }
    });
}

/// Copies the verdict as plain text. The code is loaded where there is a verdict.
pub(crate) fn copy_summary(session: Session) {
    when_ready(summary(session), drop);
}

/// Calls `then` with the run that a report is about: at once if the code is loaded, else as soon as it is
/// fetched.
pub(crate) fn with_report_source(
    session: Session,
    then: impl FnOnce(Result<Option<RunOrigin>, LoadError>) + 'static,
) {
    when_ready(report_source(session), then);
}

/// Fetches all parts but those for teachers, so that they need no network later.
pub(crate) async fn prepare() {
    // One part of each module is enough, because a module is fetched as a whole. If the fetch fails, it is
    // repeated when a part is shown.
    let _ = load_workbench().await;
    let _ = load_lesson().await;
    let _ = load_program().await;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadState {
    Loading,
    Ready,
    Failed,
}

/// Shows the part as soon as its code is loaded. If the code is loaded already, the part is shown at once.
fn show_when_loaded<L, E, S>(load: fn() -> L, show: impl Fn() -> S + Send + 'static) -> AnyView
where
    L: Future<Output = Result<(), E>> + 'static,
    E: 'static,
    S: Future<Output = Result<AnyView, LoadError>>,
{
    let state = RwSignal::new(LoadState::Loading);
    let fetch = move || {
        state.set(LoadState::Loading);
        when_ready(load(), move |result| {
            state.try_set(if result.is_ok() { LoadState::Ready } else { LoadState::Failed });
        });
    };
    fetch();
    let content = move || match state.get() {
        LoadState::Loading => view! { <p class="note part-loading" role="status">"Loading …"</p> }.into_any(),
        LoadState::Failed => view! {
            <div class="cluster" role="alert">
                <p class="note">"This part of the page could not be loaded."</p>
                {button("quiet", "load-again", "Try again", "Fetch the part again", click(fetch))}
            </div>
        }
        .into_any(),
        LoadState::Ready => poll_once(Box::pin(show()).as_mut()).and_then(Result::ok).into_any(),
    };
    view! { {content} }.into_any()
}

/// The output of the future if it is ready at the first poll.
fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
