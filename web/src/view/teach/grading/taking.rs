//! Takes the files that a class hands in: archives are unpacked, notebooks become programs, and lessons add
//! their exercises to those that are graded.

use blockyard_lessons::{Lesson, archive_files};
use js_sys::{Array, JSON, Reflect, Uint8Array};
use leptos::prelude::*;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, File};

use super::links::solution_links;
use crate::lessons::{ClassLesson, ClassSignals, HandedIn};
use crate::messages::sentence;
use crate::view::teach::make_lesson::with_requests;

/// The largest file that is read as an answer, since an answer is a short text.
const MAX_BYTES: u32 = 1_000_000;

/// The largest archive that is read at once.
const MAX_ARCHIVE: f64 = 5e7;

/// Takes the files that the teacher gave: lessons first, so that all files may answer their exercises.
pub(super) async fn take(class: ClassSignals, given: Vec<File>) {
    let mut files: Vec<(String, HandedIn)> = Vec::new();
    for file in given {
        let name = file.name();
        if name.to_lowercase().ends_with(".zip") {
            files.extend(of_archive(&file).await);
        } else {
            files.push((name, HandedIn::File(file)));
        }
    }
    let is_lesson = |name: &str| name.to_lowercase().ends_with(".md");
    let (lessons, mut answers): (Vec<_>, Vec<_>) = files.into_iter().partition(|(name, _)| is_lesson(name));
    for (name, file) in lessons {
        if let Err(why) = take_lesson(class, &name, &file).await {
            answers.push((name, HandedIn::Refused(why)));
        }
    }
    class.enqueue(answers);
}

async fn of_archive(file: &File) -> Vec<(String, HandedIn)> {
    let refused = |why: &str| vec![(file.name(), HandedIn::Refused(why.to_owned()))];
    if file.size() > MAX_ARCHIVE {
        return refused("an archive larger than 50 MB: give its files in parts");
    }
    let Some(bytes) = bytes_of(file).await else { return refused("cannot be read") };
    match archive_files(&bytes, MAX_BYTES as usize) {
        None => refused("no zip archive, or a damaged one"),
        Some(files) if files.is_empty() => refused("an archive without a file"),
        Some(files) => {
            let handed_in = |content: Result<Vec<u8>, &str>| match content {
                Ok(bytes) => HandedIn::Bytes(bytes),
                Err(why) => HandedIn::Refused(why.to_owned()),
            };
            files.into_iter().map(|file| (file.path, handed_in(file.content))).collect()
        }
    }
}

/// Takes a lesson of the teacher's, in place of an earlier lesson with the same id.
async fn take_lesson(class: ClassSignals, name: &str, file: &HandedIn) -> Result<(), String> {
    let text = text_of("", file).await?;
    let text = with_requests(text, move |bytes| class.loading.set(Some(bytes))).await;
    class.loading.set(None);
    let text = text.map_err(|why| sentence(&why))?;
    let lesson = Lesson::parse(&text).map_err(|why| sentence(&why.to_string()))?;
    let played = lesson.play().map_err(|why| sentence(&why.to_string()))?;
    if played.cards.iter().all(|card| card.exercise.is_none()) {
        return Err("a lesson without an exercise".to_owned());
    }
    class.lessons.update(|lessons| {
        lessons.retain(|known| known.id != played.id);
        lessons.push(ClassLesson { file: name.to_owned(), id: played.id, title: played.title, text });
    });
    Ok(())
}

pub(super) async fn bytes_of(file: &Blob) -> Option<Vec<u8>> {
    let buffer = JsFuture::from(file.array_buffer()).await.ok()?;
    let buffer = buffer.dyn_into::<js_sys::ArrayBuffer>().ok()?;
    Some(Uint8Array::new(&buffer).to_vec())
}

/// The text of a file, or why it has none. The code cells of a notebook are a program.
pub(super) async fn text_of(name: &str, file: &HandedIn) -> Result<String, String> {
    let bytes = match file {
        HandedIn::Refused(why) => return Err(why.clone()),
        HandedIn::Bytes(bytes) => bytes.clone(),
        HandedIn::File(file) if file.size() > f64::from(MAX_BYTES) => {
            return Err("larger than 1 MB: an answer is a text".to_owned());
        }
        HandedIn::File(file) => {
            bytes_of(file).await.ok_or("cannot be read: a folder, or a file that was moved")?
        }
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // A mail in an older encoding may have a link, which is ASCII.
        Err(other) => {
            let text = String::from_utf8_lossy(other.as_bytes()).into_owned();
            if solution_links(&text).is_empty() {
                return Err("not UTF-8".to_owned());
            }
            text
        }
    };
    let text = text.trim_start_matches('\u{feff}');
    let text = if name.to_lowercase().ends_with(".ipynb") {
        program_of_notebook(text).ok_or("a notebook that cannot be read")?
    } else {
        text.to_owned()
    };
    if text.trim().is_empty() { Err("empty".to_owned()) } else { Ok(text) }
}

/// The code cells of a notebook one after the other, without the lines that Python itself does not know.
fn program_of_notebook(text: &str) -> Option<String> {
    let of = |value: &JsValue, key: &str| Reflect::get(value, &JsValue::from_str(key)).ok();
    let cells: Array = of(&JSON::parse(text).ok()?, "cells")?.dyn_into().ok()?;
    let mut program = String::new();
    for cell in cells.iter() {
        if of(&cell, "cell_type")?.as_string()? != "code" {
            continue;
        }
        let source = of(&cell, "source")?;
        let source = match source.as_string() {
            Some(text) => text,
            None => source.dyn_into::<Array>().ok()?.join("").as_string()?,
        };
        for line in source.lines().filter(|line| !line.starts_with(['%', '!'])) {
            program.push_str(line);
            program.push('\n');
        }
    }
    Some(program)
}
