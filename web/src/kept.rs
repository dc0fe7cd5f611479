//! The reader's own files, kept by the browser on this machine so that a reload loses nothing.
//!
//! Their bytes lie in the browser's cache, outside of the page's memory, until the reader opens another file or presses
//! "Forget". A note that lives as long as the tab says which tab opened them: another tab, and another day, begin without them.

use js_sys::Array;
use leptos::task::spawn_local;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Cache, CacheStorage, File, Response, Storage};

use crate::browser;

/// The name of the cache, and of the note.
const NAME: &str = "blockyard.opened";

/// More than this is not kept: the browser writes a copy to the disk.
const MOST_BYTES: f64 = 5e8;

/// A browser has none where the page comes over plain HTTP from another machine.
fn caches() -> Option<CacheStorage> {
    let caches = browser::window()?.caches().ok()?;
    (!caches.is_undefined()).then_some(caches)
}

/// What is remembered until the tab is closed.
fn notes() -> Option<Storage> {
    browser::window()?.session_storage().ok()?
}

/// The first line is the mark of what was kept, each other line the name of a file.
fn read(note: &str) -> Option<(&str, Vec<&str>)> {
    let (mark, names) = note.split_once('\n')?;
    Some((mark, names.lines().collect()))
}

fn address(mark: &str, place: usize) -> String {
    browser::page_address(&format!("opened/{mark}/{place}"))
}

/// Whether the browser keeps files of this page, which another tab may have opened.
pub(crate) async fn is_any() -> bool {
    let Some(caches) = caches() else { return false };
    JsFuture::from(caches.has(NAME)).await.is_ok_and(|has| has.is_truthy())
}

/// Deletes what is kept.
pub(crate) async fn forget() {
    if let Some(notes) = notes() {
        let _ = notes.remove_item(NAME);
    }
    if let Some(caches) = caches() {
        let _ = JsFuture::from(caches.delete(NAME)).await;
    }
}

/// Keeps the files in place of those before; then says whether they are kept.
pub(crate) fn keep(files: Vec<File>, then: impl FnOnce(bool) + 'static) {
    let fits = files.iter().map(|file| file.size()).sum::<f64>() <= MOST_BYTES
        && !files.iter().any(|file| file.name().contains('\n'));
    spawn_local(async move {
        // What was kept before is no longer wanted, also where the new files are too large to be kept.
        forget().await;
        let mark = format!("{:.0}", js_sys::Date::now());
        // Without the room on the disk or the right to it, a reload asks for the file again.
        let is_kept = fits && put(&mark, &files).await.is_some();
        if is_kept && let Some(notes) = notes() {
            let names: Vec<String> = files.iter().map(File::name).collect();
            let _ = notes.set_item(NAME, &format!("{mark}\n{}", names.join("\n")));
        }
        then(is_kept);
    });
}

async fn put(mark: &str, files: &[File]) -> Option<()> {
    let cache: Cache = JsFuture::from(caches()?.open(NAME)).await.ok()?.dyn_into().ok()?;
    for (place, file) in files.iter().enumerate() {
        let response = Response::new_with_opt_blob(Some(file)).ok()?;
        JsFuture::from(cache.put_with_str(&address(mark, place), &response)).await.ok()?;
    }
    Some(())
}

/// The files that this tab kept; none where there are none any more.
pub(crate) async fn recall() -> Option<Vec<File>> {
    let note = notes()?.get_item(NAME).ok()??;
    let (mark, names) = read(&note)?;
    let caches = caches()?;
    let cache: Cache = JsFuture::from(caches.open(NAME)).await.ok()?.dyn_into().ok()?;
    let mut files = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let found = JsFuture::from(cache.match_with_str(&address(mark, place))).await.ok()?;
        let response: Response = found.dyn_into().ok()?;
        let blob: JsValue = JsFuture::from(response.blob().ok()?).await.ok()?;
        files.push(File::new_with_blob_sequence(&Array::of1(&blob), name).ok()?);
    }
    (!files.is_empty()).then_some(files)
}

#[cfg(test)]
mod tests {
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
