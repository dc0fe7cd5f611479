//! A copy of the reader's files, kept by the browser on this machine, so that a reload opens them again.
//!
//! The bytes are in the browser's cache, outside of the page's memory, until the reader opens another file or
//! presses "Forget". A note in the session storage, which lives as long as the tab, names the files. So only
//! the tab that opened the files opens them again.

use js_sys::Array;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Cache, CacheStorage, File, Response, Storage};

use super::FileSignals;
use crate::browser;
use crate::session::Feature;

/// The name of the cache, and of the note.
const NAME: &str = "blockyard.opened";

/// Files of more bytes in all are not kept, because the browser writes the copy to the disk.
const MAX_BYTES: f64 = 5e8;

/// The browser's caches. `None` for a page that comes over plain HTTP from another machine, which has no
/// caches.
fn caches() -> Option<CacheStorage> {
    let caches = browser::window()?.caches().ok()?;
    (!caches.is_undefined()).then_some(caches)
}

/// The session storage, which is kept until the tab is closed.
fn notes() -> Option<Storage> {
    browser::window()?.session_storage().ok()?
}

/// Reads a note: the first line is the mark of the kept files, empty where the browser did not keep them, and
/// each other line is the name of a file.
fn read(note: &str) -> Option<(&str, Vec<&str>)> {
    let (mark, names) = note.split_once('\n')?;
    Some((mark, names.lines().collect()))
}

fn address(mark: &str, index: usize) -> String {
    browser::page_address(&format!("opened/{mark}/{index}"))
}

/// Whether the browser keeps files of this page. Another tab may have opened them.
async fn is_any() -> bool {
    let Some(caches) = caches() else { return false };
    JsFuture::from(caches.has(NAME)).await.is_ok_and(|has| has.is_truthy())
}

/// Deletes the kept files and the note.
async fn forget() {
    if let Some(notes) = notes() {
        let _ = notes.remove_item(NAME);
    }
    if let Some(caches) = caches() {
        let _ = JsFuture::from(caches.delete(NAME)).await;
    }
}

/// Keeps these files in place of the former files. Calls `then` with whether they are kept.
fn keep(files: Vec<File>, then: impl FnOnce(bool) + 'static) {
    let fits = files.iter().map(|file| file.size()).sum::<f64>() <= MAX_BYTES
        && !files.iter().any(|file| file.name().contains('\n'));
    spawn_local(async move {
        // The former files are deleted even if the new ones are too large to be kept.
        forget().await;
        let mark = format!("{:.0}", js_sys::Date::now());
        // If the browser has no room or does not allow it, a reload asks the reader to open the file again.
        let is_kept = fits && write(&mark, &files).await.is_some();
        if let Some(notes) = notes() {
            let names: Vec<String> = files.iter().map(File::name).collect();
            let mark = if is_kept { mark } else { String::new() };
            let _ = notes.set_item(NAME, &format!("{mark}\n{}", names.join("\n")));
        }
        then(is_kept);
    });
}

/// Writes the files into the cache; `None` if one of them could not be written.
async fn write(mark: &str, files: &[File]) -> Option<()> {
    let cache: Cache = JsFuture::from(caches()?.open(NAME)).await.ok()?.dyn_into().ok()?;
    for (index, file) in files.iter().enumerate() {
        let response = Response::new_with_opt_blob(Some(file)).ok()?;
        JsFuture::from(cache.put_with_str(&address(mark, index), &response)).await.ok()?;
    }
    Some(())
}

/// The sentence about the file that was open in this tab and that the page cannot open again.
fn gone() -> String {
    let note = notes().and_then(|notes| notes.get_item(NAME).ok()?);
    let names = note.as_deref().and_then(read).map(|(_, names)| names.join(", "));
    match names.filter(|names| !names.is_empty()) {
        Some(names) => format!(
            "{names} was open here, and the browser has no copy of it: it is larger than {} MB, another tab has opened a file since, or the browser stores nothing for this page. Choose the file \
             again with \u{201c}Open file\u{201d}; its verdict comes with it.",
            MAX_BYTES / 1e6
        ),
        None => "This address means a file that was open in another tab. Choose it again with \u{201c}Open file\u{201d}; its verdict comes with it."
            .to_owned(),
    }
}

/// The files that this tab has kept; `None` if the browser does not have them any more.
async fn recall() -> Option<Vec<File>> {
    let note = notes()?.get_item(NAME).ok()??;
    let (mark, names) = read(&note)?;
    if mark.is_empty() {
        return None;
    }
    let caches = caches()?;
    let cache: Cache = JsFuture::from(caches.open(NAME)).await.ok()?.dyn_into().ok()?;
    let mut files = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let found = JsFuture::from(cache.match_with_str(&address(mark, index))).await.ok()?;
        let response: Response = found.dyn_into().ok()?;
        let blob: JsValue = JsFuture::from(response.blob().ok()?).await.ok()?;
        files.push(File::new_with_blob_sequence(&Array::of1(&blob), name).ok()?);
    }
    (!files.is_empty()).then_some(files)
}

impl Feature<FileSignals> {
    /// Lets the browser keep a copy of the files for a reload. An embedded page keeps none.
    pub(super) fn keep_copy(self, files: Vec<File>) {
        if self.session.navigation().embed.is_none() {
            keep(files, move |is_kept| self.has_kept_file.set(is_kept));
        }
    }

    /// Finds out whether the browser keeps a file from this visit or an earlier one.
    pub(crate) async fn look_for_kept(self) {
        self.has_kept_file.set(is_any().await);
    }

    /// Deletes the copy that the browser keeps. The file stays open.
    pub(crate) fn forget_kept(self) {
        spawn_local(async move {
            forget().await;
            self.has_kept_file.set(false);
            self.session.show_note(
                "The browser's copy of the file is deleted. What is open stays open until you leave the page.",
            );
        });
    }

    /// Opens the files again that were open before a reload, and calls `then` when the first one is open.
    pub(crate) fn open_kept(self, then: impl FnOnce() + 'static) {
        self.session.messages().show_work("Opening the file of before");
        spawn_local(async move {
            if let Some(files) = recall().await {
                return self.open_again(files, Box::new(then));
            }
            self.session.messages().work.set(None);
            self.session.show_error(gone());
        });
    }

    fn open_again(self, files: Vec<File>, then: Box<dyn FnOnce()>) {
        match files.as_slice() {
            [file] => self.open_one(file, then),
            _ => self.open_ranks(files, then),
        }
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn a_note_names_its_files_in_order() {
        assert_eq!(
            read("17\nrank0.pickle\nrank 1.pickle"),
            Some(("17", vec!["rank0.pickle", "rank 1.pickle"]))
        );
        assert_eq!(read("17"), None);
    }
}
