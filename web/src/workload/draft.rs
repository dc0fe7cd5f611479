//! The workload of the last visit, remembered by the browser so that a reload loses nothing.

use leptos::prelude::*;

use crate::browser;
use crate::effect::effect;
use crate::run::Input;
use crate::session::Session;
use crate::workload::SettingsTexts;

const KEY: &str = "blockyard.workload";
/// A longer text is not remembered, because the browser's storage has room for some megabytes only and is
/// written at each key.
const MAX_BYTES: usize = 1 << 20;

/// Remembers the workload whenever it changes.
pub(crate) fn follow(session: Session) {
    effect(move || {
        session.workload().input.with(|input| match written(input) {
            Some(draft) => browser::remember(KEY, &draft),
            // Without this, a reload would restore an older text.
            None => browser::forget(KEY),
        });
    });
}

/// The remembered workload, if there is one.
pub(crate) fn recall() -> Option<(String, SettingsTexts)> {
    read(&browser::recall(KEY)?)
}

/// The stored form: title, settings and capacity on a line each, then the text. `None` if the workload cannot
/// be stored.
fn written(input: &Input) -> Option<String> {
    let Input { title, conf, capacity, text, .. } = input;
    let is_kept = text.len() <= MAX_BYTES && ![title, conf, capacity].iter().any(|line| line.contains('\n'));
    is_kept.then(|| format!("{title}\n{conf}\n{capacity}\n{text}"))
}

fn read(draft: &str) -> Option<(String, SettingsTexts)> {
    let mut parts = draft.splitn(4, '\n').map(str::to_owned);
    let (title, conf, capacity) = (parts.next()?, parts.next()?, parts.next()?);
    Some((parts.next()?, SettingsTexts { title, conf, capacity }))
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn input(text: &str) -> Input {
        let [title, conf, capacity] = ["Mine", "max_split_size_mb:64", "2 GiB"].map(str::to_owned);
        Input { title, conf, capacity, text: text.to_owned(), is_on_gpu: false }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["", "a = alloc 3 MiB", "\n\na = alloc 3 MiB\nfree a\n"] {
            let (read_text, settings) = read(&written(&input(text)).unwrap()).unwrap();
            assert_eq!(read_text, text);
            assert_eq!(settings.title, "Mine");
            assert_eq!(settings.conf, "max_split_size_mb:64");
            assert_eq!(settings.capacity, "2 GiB");
        }
    }

    #[test]
    fn what_cannot_be_kept_is_not_written_and_what_is_damaged_is_not_read() {
        assert_eq!(written(&input(&"#".repeat(MAX_BYTES + 1))), None);
        assert_eq!(written(&Input { conf: "a\nb".to_owned(), ..input("") }), None);
        assert_eq!(read("only a title"), None);
        assert_eq!(read(""), None);
    }
}
