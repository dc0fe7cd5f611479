use blockyard_record::{Bytes, StreamId};
use blockyard_workload::edit::{EditAction, EditError, insert};
use blockyard_workload::presets::presets;
use blockyard_workload::{Request, TensorId, Workload};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Pieces of the language. Random sequences of them are broken texts of which the parser reads a large part.
const PIECES: [&str; 56] = [
    "a",
    "b",
    "x",
    "x[0]",
    "x[i]",
    "[",
    "]",
    "[*]",
    "*",
    "=",
    "alloc",
    "free",
    "stream",
    "record_stream",
    "advance",
    "empty_cache",
    "set_fraction",
    "reset_peak",
    "pool",
    "enter",
    "leave",
    "destroy",
    "no_split",
    "use_on_oom",
    "set",
    "p:1",
    "step",
    "\"s\"",
    "\"{i}\"",
    "\"",
    "{",
    "}",
    "repeat",
    "for",
    "in",
    "as",
    "i",
    "t",
    "from",
    "down",
    "3",
    "0",
    "1.5",
    "18446744073709551616",
    "MiB",
    "x 4",
    "float32",
    "on",
    "default",
    "side",
    ",",
    ";",
    "\n",
    "\r\n",
    "# c\n",
    "é",
];

/// Asserts what holds for any text: parsing does not panic, and the place of an error is in the text.
fn check_any(text: &str) -> Result<(), TestCaseError> {
    match Workload::parse(text) {
        Ok(workload) => {
            let labels = workload.labels();
            prop_assert!(labels.is_sorted_by_key(|(index, _)| *index));
            prop_assert!(labels.iter().all(|(index, _)| *index as usize <= workload.requests().len()));
            prop_assert!(workload.line(workload.requests().len()).is_none());
        }
        Err(error) => {
            let (line, column, length) = error.position();
            // Text that ends in a line break has one more line, an empty one.
            let source = text.split('\n').nth(line as usize - 1);
            let width = source.map(|source| source.chars().count());
            prop_assert!(length >= 1);
            prop_assert!(width.is_some_and(|width| column as usize <= width + 1), "{error}");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_parses_or_says_where_it_does_not(text: String) {
        check_any(&text)?;
    }

    #[test]
    fn any_words_parse_or_say_where_they_do_not(words in vec(select(PIECES.as_slice()), 0..40), gap in select(["", " "].as_slice())) {
        check_any(&words.join(gap))?;
    }

    #[test]
    fn a_damaged_text_parses_or_says_where_it_does_not(
        preset in select(presets()),
        damage in vec((any::<Index>(), any::<bool>(), select(PIECES.as_slice())), 1..4),
    ) {
        let mut characters = preset.text.chars().collect::<Vec<_>>();
        for (place, is_insertion, piece) in damage {
            let place = place.index(characters.len());
            if is_insertion {
                characters.splice(place..place, piece.chars());
            } else {
                characters.remove(place);
            }
        }
        check_any(&characters.into_iter().collect::<String>())?;
    }

    #[test]
    fn a_text_cut_anywhere_parses_or_says_where_it_does_not(preset in select(presets()), place: Index) {
        let characters = preset.text.chars().collect::<Vec<_>>();
        check_any(&characters.iter().take(place.index(characters.len())).collect::<String>())?;
    }
}

/// A text to start editing from, and whether statements can go everywhere in it.
fn start() -> impl Strategy<Value = (String, bool)> {
    let plain = select(
        [
            "",
            "# nothing yet",
            "stream s\n\n  a = alloc 3 MiB   # one\n  b = alloc 1 on s\n\nstep \"two\"\nfree b\n",
            "a = alloc 1; c = alloc 2; free a; step \"x\"; free c",
            "pool p use_on_oom\nenter p; a = alloc 1; leave p\nset max_split_size_mb:64 # not now\ndestroy p; free a",
            "advance;\r\nx[1] = alloc 5\r\n;x[2] = alloc 6;\r\nfree x[1]",
        ]
        .as_slice(),
    );
    let lists = select(
        [
            "a = alloc 1; b = alloc 2; c = alloc 3\nadvance\nfree a, c, b\n",
            "x[0] = alloc 1\nx[1] = alloc 1; x[2] = alloc 1\nfree x[1], x[*] # all\nadvance",
            "stream s, t; repeat 3 as i { x[i] = alloc 1 MiB on t }\nrecord_stream x[0] s\nrepeat 3 as i down { free x[i] }",
        ]
        .as_slice(),
    );
    let preset = select(presets()).prop_map(|preset| (preset.text.to_owned(), false));
    prop_oneof![
        plain.prop_map(|text| (text.to_owned(), true)),
        lists.prop_map(|text| (text.to_owned(), false)),
        preset,
    ]
}

/// A random statement that can be inserted after the first `done` requests.
fn choose(workload: &Workload, done: usize, choice: u8, size: u64, pick: Index) -> EditAction {
    let mut live = Vec::new();
    for request in &workload.requests()[..done] {
        match request {
            Request::Allocate { tensor, .. } => live.push(*tensor),
            Request::Free { tensor } => live.retain(|other| other != tensor),
            _ => {}
        }
    }
    let stream = StreamId::new(pick.index(workload.streams().len() + 1) as u64);
    let tensor = (!live.is_empty()).then(|| live[pick.index(live.len())]);
    match (choice % 10, tensor) {
        (0..=2, Some(tensor)) => EditAction::Free { tensor },
        (3, Some(tensor)) => EditAction::RecordStream { tensor, stream },
        (4, _) => EditAction::EmptyCache,
        (5, _) => EditAction::Advance { stream: Some(stream).filter(|_| size.is_multiple_of(2)) },
        (6, _) => EditAction::SetFraction { fraction: f64::from(choice) / 255.0 },
        (7, _) => EditAction::DeclareStream,
        _ => EditAction::Allocate { size: Bytes::new(size), stream },
    }
}

fn check_request(request: Request, action: EditAction, created: Option<TensorId>) -> bool {
    let expected = match action {
        EditAction::Allocate { size, stream } => {
            return matches!(request, Request::Allocate { tensor, size: asked, stream: on }
                if Some(tensor) == created && asked == size && on == stream);
        }
        EditAction::Free { tensor } => Request::Free { tensor },
        EditAction::RecordStream { tensor, stream } => Request::RecordStream { tensor, stream },
        EditAction::Advance { stream } => Request::Advance { stream },
        EditAction::EmptyCache => Request::EmptyCache,
        EditAction::ResetPeak => Request::ResetPeak,
        EditAction::ResetAccumulated => Request::ResetAccumulated,
        EditAction::SetFraction { fraction } => Request::SetFraction { fraction },
        EditAction::DeclareStream => return false,
    };
    request == expected
}

proptest! {
    #[test]
    fn edits_put_the_wanted_request_where_it_was_wanted(
        start in start(),
        edits in vec((any::<Index>(), any::<u8>(), any::<u64>(), 0_u32..64, any::<Index>()), 1..12),
    ) {
        let (mut text, allows_everything) = start;
        for (place, choice, size, shift, pick) in edits {
            let workload = Workload::parse(&text).unwrap();
            let mut done = place.index(workload.requests().len() + 1);
            let action = choose(&workload, done, choice, size >> shift, pick);
            let mut outcome = insert(&text, &workload, done, action);
            if let Err(EditError::InsideLoop { resume }) = outcome {
                prop_assert!(!allows_everything && resume > done && resume <= workload.requests().len());
                done = resume;
                outcome = insert(&text, &workload, done, EditAction::EmptyCache);
                prop_assert!(outcome.is_ok(), "{outcome:?}");
                continue;
            }
            let edit = match outcome {
                Ok(edit) => edit,
                // A later statement contradicts the edit: a `record_stream` of the tensor, a free of the
                // tensor in a loop, or the declaration of the stream.
                Err(EditError::Conflict { line, .. }) => {
                    prop_assert!(line > 0);
                    continue;
                }
                Err(EditError::StreamDeclaredLater { .. }) => continue,
                Err(error) => return Err(TestCaseError::fail(format!("{error}: {action:?} at {done} in\n{text}"))),
            };
            let after = Workload::parse(&edit.text);
            prop_assert!(after.is_ok(), "{after:?}: {action:?} at {done} in\n{text}");
            let after = after.unwrap();
            if action == EditAction::DeclareStream {
                prop_assert_eq!(after.streams().len(), workload.streams().len() + 1);
                prop_assert_eq!(after.requests(), workload.requests());
                for (stream, name) in workload.streams() {
                    prop_assert_eq!(after.stream_name(stream), Some(name));
                }
            } else {
                prop_assert_eq!(edit.request, done);
                prop_assert!(check_request(after.requests()[done], action, edit.tensor), "{:?} at {} in\n{}", action, done, text);
                prop_assert_eq!(after.line(done), Some(edit.line), "{}", edit.text);
                prop_assert_eq!(after.labels().len(), workload.labels().len());
                prop_assert_eq!(edit.text.matches('#').count(), text.matches('#').count());
                let freed = usize::from(after.requests().len() == workload.requests().len());
                prop_assert_eq!(after.requests().len() + freed, workload.requests().len() + 1);
            }
            text = edit.text;
        }
    }
}
