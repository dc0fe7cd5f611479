//! All keys, in a dialog.

use leptos::html;
use leptos::prelude::*;

use crate::view::icon::Icon;
use crate::view::kit::{click, icon_button};

/// The dialog; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Help(NodeRef<html::Dialog>);

const KEYS: [(&str, &[(&str, &str)]); 3] = [
    (
        "Player",
        &[
            ("←  →", "one step (or event) back, forward"),
            ("Shift + ←  →", "a hundred"),
            ("Home  End", "first, last"),
            ("Space", "play or pause"),
            ("[  ]", "previous, next segment call"),
            ("{  }", "previous, next out of memory"),
            ("<  >", "previous, next label"),
            ("K  Shift + K", "the moment where most is allocated, reserved"),
            ("P  N", "previous, next event of the chosen block"),
        ],
    ),
    (
        "Timeline",
        &[
            ("W  S", "zoom in, out"),
            ("Shift + W  S  A  D", "zoom and move the bytes of allocations over time"),
            ("M", "put a mark, a second cursor, or take it away"),
            ("/", "search allocations of a recording"),
            ("A  D", "move left, right"),
            ("+  -  0", "zoom in, out, show everything"),
            ("Ctrl or Cmd + wheel", "zoom at the pointer"),
            ("Double click", "show everything"),
        ],
    ),
    (
        "Segments and workload",
        &[
            ("Arrows", "move from block to block, when the map has the focus"),
            ("+ -", "zoom into the segment of the block that the arrows are on, and out again"),
            ("Enter", "choose the block"),
            ("F  Delete", "free the chosen block"),
            ("Esc", "release the block, leave a zoomed segment"),
            ("/", "go to the workload's text"),
            ("Ctrl + Z", "undo"),
            ("Ctrl + Shift + Z", "redo"),
            ("?", "this list"),
        ],
    ),
];

const LANGUAGE: [(&str, &str); 14] = [
    ("a = alloc 3 MiB", "allocate; sizes also as 1.5 GiB, 4096, 10000 x 10000 float32"),
    ("a = alloc 3 MiB on side", "on another stream"),
    ("free a, b", "give back; free x[*] for all elements of x"),
    ("stream side", "declare a stream"),
    ("record_stream a side", "a is used on side too: its free waits for side"),
    ("advance side", "the work queued on side is done; advance alone for every stream"),
    ("empty_cache", "give cached segments back to the device"),
    ("set_fraction 0.5", "limit the reserved bytes to a share of the device"),
    ("set max_split_size_mb:64", "change the allocator's settings from here on"),
    ("pool p; enter p; leave p; destroy p", "a memory pool; pool p no_split use_on_oom for its options"),
    ("reset_peak", "set the peaks to the present; also reset_accumulated"),
    ("step \"forward\"", "a label for what follows"),
    ("repeat 3 as i { x[i] = alloc 2 MiB }", "loop; also from 1, down, and for t in a, b { ... }"),
    ("# words", "a comment; ; stands between statements on one line"),
];

impl Help {
    pub(crate) fn new() -> Self {
        Self(NodeRef::new())
    }

    pub(crate) fn open(self) {
        if let Some(dialog) = self.0.get_untracked()
            && !dialog.open()
        {
            let _ = dialog.show_modal();
        }
    }

    pub(crate) fn dialog(self) -> AnyView {
        let close = click(move || {
            if let Some(dialog) = self.0.get_untracked() {
                dialog.close();
            }
        });
        let groups = KEYS
            .map(|(title, keys)| {
                let keys = keys
                    .iter()
                    .map(|(key, meaning)| {
                        view! { <li><span>{*meaning}</span><kbd>{*key}</kbd></li> }.into_any()
                    })
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
        view! {
            <dialog node_ref=self.0 aria-labelledby="help-title" data-testid="help-dialog">
                <header>
                    <h2 id="help-title">"Keys and language"</h2>
                    {icon_button("icon plain", "close-help", Icon::Close, "Close (Esc)", close)}
                </header>
                <div class="keys">{groups}</div>
                <section>
                    <h3>"The language of workloads"</h3>
                    <ul class="language">{statements}</ul>
                </section>
                <p class="quiet">
                    "Everything runs in this page: recordings and workloads stay on this computer, and the page works
                    without the network once it is loaded. Drop a recording or a
                    workload anywhere to open it. This browser remembers the workload for the next visit."
                </p>
            </dialog>
        }
        .into_any()
    }
}
