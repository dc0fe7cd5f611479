//! The list of completions below the caret.

use blockyard_workload::Completions;
use leptos::ev;
use leptos::prelude::*;

use crate::browser;
use crate::view::kit::{click, on, text};

const LIST_ID: &str = "suggestions";

/// The list while it is open.
#[derive(Clone, Debug, PartialEq)]
struct OpenList {
    found: Completions,
    /// The entry that the arrow keys are on.
    chosen: Option<usize>,
    /// Where the word begins: its left and its lower edge in the window.
    place: (f64, f64),
}

/// The meaning of a key for the open list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyMeaning {
    /// The key belongs to the text.
    Nothing,
    /// The list has used the key, and the text must not get it.
    Used,
    /// The key chose this entry, which the caller writes into the text.
    Entry(String),
}

/// The list; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(super) struct Suggestions(RwSignal<Option<OpenList>>);

impl Suggestions {
    pub(super) fn new() -> Self {
        Self(RwSignal::new(None))
    }

    pub(super) fn open(self, found: Completions, place: (f64, f64)) {
        let shown = (!found.items.is_empty()).then_some(OpenList { found, chosen: None, place });
        if self.0.with_untracked(|before| *before != shown) {
            self.0.set(shown);
        }
    }

    pub(super) fn close(self) {
        if self.0.try_with_untracked(Option::is_some) == Some(true) {
            self.0.set(None);
        }
    }

    /// The first byte, in the text, of the word that an entry replaces.
    pub(super) fn start(self) -> Option<usize> {
        self.0.with_untracked(|shown| shown.as_ref().map(|shown| shown.found.start))
    }

    /// The meaning of the key for the list, which uses the key where it can.
    ///
    /// Until an arrow key has chosen an entry, Enter begins a new line of the text.
    pub(super) fn key(self, event: &ev::KeyboardEvent) -> KeyMeaning {
        let Some(shown) = self.0.get_untracked() else { return KeyMeaning::Nothing };
        if event.ctrl_key() || event.meta_key() || event.alt_key() || event.shift_key() {
            return KeyMeaning::Nothing;
        }
        let count = shown.found.items.len();
        let entry = |chosen: Option<usize>| {
            let item = shown.found.items.get(chosen.unwrap_or(0));
            item.map_or(KeyMeaning::Nothing, |item| KeyMeaning::Entry(item.text.clone()))
        };
        match event.key().as_str() {
            "ArrowDown" => self.choose(shown.chosen.map_or(0, |chosen| (chosen + 1) % count)),
            "ArrowUp" => self.choose(shown.chosen.map_or(count - 1, |chosen| (chosen + count - 1) % count)),
            "Escape" => self.close(),
            "Tab" => return entry(shown.chosen),
            "Enter" if shown.chosen.is_some() => return entry(shown.chosen),
            "Enter" | "ArrowLeft" | "ArrowRight" | "Home" | "End" => {
                self.close();
                return KeyMeaning::Nothing;
            }
            _ => return KeyMeaning::Nothing,
        }
        KeyMeaning::Used
    }

    fn choose(self, chosen: usize) {
        self.0.update(|shown| {
            if let Some(shown) = shown {
                shown.chosen = Some(chosen);
            }
        });
    }

    /// The id of the list while it is open, for `aria-controls` of the text field.
    pub(super) fn controls(self) -> Signal<Option<String>> {
        Signal::derive(move || self.0.with(Option::is_some).then(|| LIST_ID.to_owned()))
    }

    /// The id of the entry that the arrow keys are on, for `aria-activedescendant` of the text field.
    pub(super) fn active(self) -> Signal<Option<String>> {
        Signal::derive(move || {
            self.0.with(|shown| shown.as_ref().and_then(|shown| shown.chosen).map(entry_id))
        })
    }

    pub(super) fn view(self, put: impl Fn(&str) + Copy + Send + 'static) -> AnyView {
        // Other entries make a new list; another choice among the same entries only changes attributes.
        let entries = Memo::new(move |_| {
            self.0.with(|shown| shown.as_ref().map(|shown| (shown.found.clone(), shown.place)))
        });
        let content = move || {
            let (found, (left, bottom)) = entries.get()?;
            let items = found.items.into_iter().enumerate().map(|(index, item)| {
                let written = item.text.clone();
                let is_chosen = text(move || {
                    let chosen = self.0.with(|shown| shown.as_ref().and_then(|shown| shown.chosen));
                    (chosen == Some(index)).to_string()
                });
                view! {
                    <li
                        role="option"
                        id=entry_id(index)
                        aria-selected=is_chosen
                        on:click=click(move || put(&written))
                    >
                        <span>{item.text}</span>
                        <span class="quiet">{item.detail}</span>
                    </li>
                }
                .into_any()
            });
            let items = items.collect::<Vec<_>>();
            let style = style_at(left, bottom, items.len());
            // A press on the list must not take the focus from the field, since the list closes when the
            // field loses it.
            let keep = on(move |event: ev::PointerEvent| event.prevent_default());
            let keep_mouse = on(move |event: ev::MouseEvent| event.prevent_default());
            Some(
                view! {
                    <ul
                        class="suggestions"
                        id=LIST_ID
                        role="listbox"
                        aria-label="What may stand here"
                        data-testid="suggestions"
                        style=style
                        on:pointerdown=keep
                        on:mousedown=keep_mouse
                    >
                        {items}
                    </ul>
                }
                .into_any(),
            )
        };
        view! { {content} }.into_any()
    }
}

fn entry_id(index: usize) -> String {
    format!("suggestion-{index}")
}

/// The style that places the list below the word, or above the word where there is more room.
fn style_at(left: f64, bottom: f64, count: usize) -> String {
    let (width, height) = browser::window_size();
    let left = left.min(width - 230.0).max(4.0);
    let needed = 27.0 * crate::frames::count(count) + 12.0;
    if bottom + needed > height && bottom > height / 2.0 {
        format!("left:{left}px;bottom:{}px", height - bottom + 22.0)
    } else {
        format!("left:{left}px;top:{}px", bottom + 2.0)
    }
}
