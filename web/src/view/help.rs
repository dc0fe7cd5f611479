//! The help: all keys, how to read the figures, and the workload language, in a dialog.

use blockyard_rules::Release;
use leptos::prelude::*;

use crate::session::Session;
use crate::view::header::theme_picker;
use crate::view::icon::Icon;
use crate::view::kit::{Dialog, click, icon_button};
use crate::view::messages;
use crate::view::parts;

/// The dialog; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Help {
    dialog: Dialog,
    was_opened: RwSignal<bool>,
}

const KEYS: [(&str, &[(&str, &str)]); 3] = [
    (
        "Player",
        &[
            ("←  →", "one request (or event) back, forward"),
            ("Shift + ←  →", "a hundred"),
            ("Home  End", "first, last"),
            ("Space", "play or pause"),
            ("[  ]", "previous, next request that calls the device"),
            ("{  }", "previous, next out of memory"),
            ("<  >", "previous, next label"),
            ("K  Shift + K", "the moment where most is allocated, reserved"),
            ("P  N", "previous, next event of the chosen block"),
        ],
    ),
    (
        "Every figure",
        &[
            ("Wheel, two fingers", "zoom at the pointer; where the whole is shown, the page scrolls"),
            ("+  -", "zoom in, out; also W  S, and with Shift the bytes of allocations over time"),
            (
                "Drag",
                "move the shown part; also A  D. Where the whole is shown, brush a range. The cursor and the end of a block follow a drag",
            ),
            ("Shift + drag, M", "brush a range: M begins it at the cursor and completes it there"),
            ("Z", "show the brushed range alone"),
            ("Click", "choose a block, an event, a line: the side says what it is"),
            ("Double click, 0", "the whole again"),
            ("Esc", "let go of the range, then of the choice"),
            ("/", "search allocations of a recording"),
            ("Arrows  Enter", "on the border of a panel: move it, put it back"),
            ("Page down, up", "in a presented lesson: go on, go back; B makes the screen dark"),
            ("1 to 5", "in the workbench: hide or show device, timeline, segments, allocations, side"),
            ("Shift + 1 to 4", "show one figure alone; the same keys or Esc for all"),
        ],
    ),
    (
        "Segments and workload",
        &[
            ("Arrows  Enter", "go from block to block and choose one, when the map has the focus"),
            ("Arrows  Page", "scroll the map, when the strip of all segments has the focus"),
            ("F  Delete", "free the chosen block"),
            (",  .", "make the chosen block smaller, larger; or drag its right end (Shift: by 512 bytes)"),
            ("/", "go to the workload's text"),
            ("Ctrl + Space", "what may be typed here; arrows and Enter, or Tab"),
            ("Tab", "four spaces; after Esc it leaves the text"),
            ("Ctrl + Z", "undo"),
            ("Ctrl + Shift + Z", "redo"),
            ("?", "this list"),
        ],
    ),
];

/// The explanations of how to read the figures: a term and its meaning.
const FIGURES: [(&str, &str); 9] = [
    (
        "The bar",
        "every byte of the device, in one class each; brackets over it: allocated in reserved in device",
    ),
    ("The segments", "below the bar on the same ruler, so that reserved is their sum"),
    ("Over time", "the same classes after each request"),
    ("The strip below it", "the whole of a long run; the frame is around the part in sight"),
    (
        "While a file is read",
        "memory over time of the part that has been read grows beside progress and Cancel; the memory before the trace is known at the end",
    ),
    ("The segment map", "one row a segment, its blocks by address; L is the large pool, S the small pool"),
    (
        "The strip above",
        "all segments by size; the frame is around the rows in sight, click or drag scrolls there",
    ),
    ("Amber", "what this request changed"),
    ("Red", "out of memory, and nothing else"),
];

const LANGUAGE: [(&str, &str); 17] = [
    ("a = alloc 3 MiB", "allocate; sizes also as 1.5 GiB, 4096, 10000 x 10000 float32"),
    ("x = torch.empty(1000, 1000)", "as PyTorch writes it, also del x and torch.cuda.empty_cache()"),
    ("a = alloc 3 GB", "units of a thousand too: below the text stands what that is"),
    ("a = alloc 3 MiB on side", "on another stream"),
    ("free a, b", "give back; free x[*] for all elements of x"),
    ("stream side", "declare a stream"),
    ("record_stream a side", "a is used on side too: its free waits for side"),
    ("advance side", "the work queued on side is done; advance alone for every stream"),
    ("empty_cache", "release cached segments to the device"),
    ("set_fraction 0.5", "limit the reserved bytes to a share of the device"),
    ("set max_split_size_mb:64", "change the allocator's settings from here on"),
    ("pool p; enter p; leave p; destroy p", "a memory pool; pool p no_split use_on_oom for its options"),
    ("reset_peak", "set the peaks to the present; also reset_accumulated"),
    ("step \"forward\"", "a label for what follows"),
    ("repeat 3 as i { x[i] = alloc 2 MiB }", "loop; also from 1, down, and for t in a, b { ... }"),
    ("capacity 64 MiB; conf max_split_size_mb:64", "what the text is written for"),
    ("# words", "a comment; ; stands between statements on one line"),
];

impl Help {
    pub(crate) fn new() -> Self {
        Self { dialog: Dialog::new(), was_opened: RwSignal::new(false) }
    }

    pub(crate) fn open(self) {
        self.was_opened.set(true);
        self.dialog.open();
    }

    pub(crate) fn dialog(self, session: Session) -> AnyView {
        let content = move || self.was_opened.get().then(|| parts::help(session, self));
        view! {
            <dialog node_ref=self.dialog.0 aria-labelledby="help-title" data-testid="help-dialog">
                <header>
                    <h2 id="help-title">"Colors, figures, keys and language"</h2>
                    {icon_button("icon plain", "close-help", Icon::Close, "Close (Esc)", click(move || self.dialog.close()))}
                </header>
                {content}
            </dialog>
        }
        .into_any()
    }
}

/// The content of the dialog, whose texts the first screen does not load.
pub(crate) fn content(session: Session, help: Help) -> AnyView {
    let groups = KEYS
        .map(|(title, keys)| {
            let keys = keys
                .iter()
                .map(|(key, meaning)| view! { <li><span>{*meaning}</span><kbd>{*key}</kbd></li> }.into_any())
                .collect::<Vec<_>>();
            view! { <section><h3>{title}</h3><ul>{keys}</ul></section> }.into_any()
        })
        .into_iter()
        .collect::<Vec<_>>();
    let statements = LANGUAGE
        .iter()
        .map(|(statement, meaning)| {
            view! { <li><code>{*statement}</code><span>{*meaning}</span></li> }.into_any()
        })
        .collect::<Vec<_>>();
    let figures = FIGURES
        .iter()
        .map(|(part, meaning)| view! { <dt>{*part}</dt><dd>{*meaning}</dd> }.into_any())
        .collect::<Vec<_>>();
    view! {
        <p class="cluster"><label for="theme">"Colors"</label>{theme_picker(session)}</p>
        <section>
            <h3>"How to read the figures"</h3>
            <dl class="facts">{figures}</dl>
        </section>
        <p class="touch">"With a finger: a tap chooses, one finger moves a part that two fingers have enlarged; the end of a block follows a finger; from side to side turns the cards of a lesson."</p>
        <div class="keys">{groups}</div>
        <section>
            <h3>"The language of workloads"</h3>
            <ul class="language">{statements}</ul>
        </section>
        <section>
            <h3>"Your files"</h3>
            <p>
                "Everything runs in this page: nothing is uploaded, and the page works without the network once it is
                loaded. Drop a file anywhere to open it. So that a reload opens it again, a copy of the last file (up to
                500 MB) stays in this browser's cache, on this machine only, until you open another file or press
                Forget. This browser also remembers the text of your workload for the next visit."
            </p>
            {messages::kept_file(session, "forget-help")}
        </section>
        <p class="quiet" data-testid="about" on:click=click(move || help.dialog.close())>
            "Blockyard "{env!("CARGO_PKG_VERSION")}", PyTorch's caching allocator as of PyTorch "{Release::default().name()}"; MIT or Apache-2.0. "
            <a href="#glossary">"The words"</a>", "<a href="#lessons">"the lessons"</a>", "<a href="#teachers">"for teachers"</a>"."
        </p>
    }
    .into_any()
}
