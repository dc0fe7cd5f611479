use blockyard_record::{Bytes, StreamId};
use blockyard_workload::edit::{Edit, EditAction, EditError, insert, resize};
use blockyard_workload::{Request, TensorId, Workload};

const EMPTY_CACHE: EditAction = EditAction::EmptyCache;

fn try_insert(text: &str, done: usize, action: EditAction) -> Result<Edit, EditError> {
    insert(text, &Workload::parse(text).unwrap(), done, action)
}

fn free(tensor: u32) -> EditAction {
    EditAction::Free { tensor: TensorId::new(tensor) }
}

fn alloc(size: Bytes, stream: u64) -> EditAction {
    EditAction::Allocate { size, stream: StreamId::new(stream) }
}

/// Checks the new text, with an arrow at the start of the new line.
fn check(text: &str, done: usize, action: EditAction, expected: &str) {
    let edit = try_insert(text, done, action).unwrap();
    let mut lines = edit.text.split('\n').map(str::to_owned).collect::<Vec<_>>();
    lines[edit.line as usize - 1].insert(0, '>');
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn a_statement_goes_behind_the_last_request() {
    check("", 0, alloc(Bytes::mib(3), 0), ">a = alloc 3 MiB\n");
    check("# only a comment", 0, alloc(Bytes::new(1537), 0), "# only a comment\n>a = alloc 1537 B\n");
    check("a = alloc 1", 1, alloc(Bytes::new(1536), 0), "a = alloc 1\n>b = alloc 1.5 KiB\n");
    check("a = alloc 1\n\nstep \"two\"\n", 1, EMPTY_CACHE, "a = alloc 1\n\nstep \"two\"\n>empty_cache\n");
}

#[test]
fn a_statement_goes_on_a_line_of_its_own_in_the_middle() {
    check(
        "# first\na = alloc 1   # why\n# next\nfree a\n",
        1,
        EMPTY_CACHE,
        "# first\na = alloc 1   # why\n>empty_cache\n# next\nfree a\n",
    );
    check(
        "  a = alloc 1;\n  step \"b\"\n  free a",
        1,
        EditAction::Advance { stream: None },
        "  a = alloc 1;\n>  advance\n  step \"b\"\n  free a",
    );
    check(
        "\trepeat 2 {\n\t\tadvance\n\t}\r\nadvance\r\n",
        2,
        EditAction::ResetPeak,
        "\trepeat 2 {\n\t\tadvance\n\t}\r\n>\treset_peak\r\nadvance\r\n",
    );
}

#[test]
fn a_statement_at_the_start_goes_behind_streams_and_comments() {
    check(
        "# title\nstep \"one\"\na = alloc 1\n",
        0,
        EMPTY_CACHE,
        "# title\n>empty_cache\nstep \"one\"\na = alloc 1\n",
    );
    check(
        "# title\nstream s\n\na = alloc 1\n",
        0,
        EMPTY_CACHE,
        "# title\nstream s\n>empty_cache\n\na = alloc 1\n",
    );
    check(
        "empty_cache\nstream s\nadvance\n",
        1,
        alloc(Bytes::gib(1), 1),
        "empty_cache\nstream s\n>a = alloc 1 GiB on s\nadvance\n",
    );
}

#[test]
fn statements_that_share_a_line_make_room() {
    check("a = alloc 1; free a # both", 1, EMPTY_CACHE, ">a = alloc 1; empty_cache; free a # both");
    check(
        "repeat 2 { advance }; empty_cache",
        2,
        EditAction::SetFraction { fraction: 0.25 },
        ">repeat 2 { advance }; set_fraction 0.25; empty_cache",
    );
}

#[test]
fn statements_go_between_those_of_pools_and_settings() {
    let text =
        "pool p no_split\nenter p\n  a = alloc 1\nleave p\nset max_split_size_mb:64 ; advance\ndestroy p\n";
    check(
        text,
        0,
        EMPTY_CACHE,
        ">empty_cache\npool p no_split\nenter p\n  a = alloc 1\nleave p\nset max_split_size_mb:64 ; advance\ndestroy p\n",
    );
    check(
        text,
        2,
        alloc(Bytes::mib(1), 0),
        "pool p no_split\nenter p\n>b = alloc 1 MiB\n  a = alloc 1\nleave p\nset max_split_size_mb:64 ; advance\ndestroy p\n",
    );
    check(
        text,
        5,
        free(0),
        "pool p no_split\nenter p\n  a = alloc 1\nleave p\n>set max_split_size_mb:64; free a ; advance\ndestroy p\n",
    );
}

#[test]
fn inside_a_loop_or_a_list_there_is_no_place() {
    let text = "a = alloc 1; b = alloc 1\nrepeat 3 {\n advance\n empty_cache\n}\nfree a, b";
    for (done, resume) in [(3, 8), (7, 8), (9, 10)] {
        let error = try_insert(text, done, EMPTY_CACHE).unwrap_err();
        assert_eq!(error, EditError::InsideLoop { resume });
        assert!(try_insert(text, resume, EMPTY_CACHE).is_ok());
    }
}

#[test]
fn new_tensors_get_names_that_the_text_does_not_use() {
    let edit = try_insert("a = alloc 1; c = alloc 1 # b", 1, alloc(Bytes::kib(1), 0)).unwrap();
    assert_eq!(edit.tensor, Some(TensorId::new(1)));
    assert_eq!(edit.text, "a = alloc 1; b = alloc 1 KiB; c = alloc 1 # b");
    let letters = ('a'..='z').map(|letter| format!("{letter} = alloc 1")).collect::<Vec<_>>().join("\n");
    let edit = try_insert(&letters, 26, alloc(Bytes::kib(1), 0)).unwrap();
    assert!(edit.text.ends_with("\nz = alloc 1\na1 = alloc 1 KiB\n"), "{}", edit.text);
    check(
        "repeat 2 as a { b[a] = alloc 1 }",
        2,
        alloc(Bytes::kib(1), 0),
        "repeat 2 as a { b[a] = alloc 1 }\n>c = alloc 1 KiB\n",
    );
}

#[test]
fn a_block_is_freed_by_its_name() {
    check(
        "repeat 2 as i { x[i] = alloc 1 }\nadvance",
        2,
        free(1),
        "repeat 2 as i { x[i] = alloc 1 }\n>free x[1]\nadvance",
    );
    check(
        "a = alloc 1\nfree a\na = alloc 2\nadvance",
        3,
        free(1),
        "a = alloc 1\nfree a\na = alloc 2\n>free a\nadvance",
    );
}

#[test]
fn a_later_free_of_the_same_tensor_goes() {
    check(
        "a = alloc 1\nadvance\n  free a\nempty_cache",
        1,
        free(0),
        "a = alloc 1\n>free a\nadvance\nempty_cache",
    );
    check("a = alloc 1\nadvance\nfree a # done", 1, free(0), "a = alloc 1\n>free a\nadvance\n # done");
    check(
        "a = alloc 1; free a; a = alloc 2; free a",
        1,
        free(0),
        ">a = alloc 1; free a; a = alloc 2; free a",
    );
    check("a = alloc 1; advance; free a", 2, free(0), "a = alloc 1; advance\n>free a");
    check(
        "a = alloc 1; b = alloc 2; c = alloc 3\nfree a, b ,c\n",
        3,
        free(0),
        "a = alloc 1; b = alloc 2; c = alloc 3\n>free a\nfree b ,c\n",
    );
    check(
        "a = alloc 1; b = alloc 2; c = alloc 3\nfree a, b ,c\n",
        3,
        free(1),
        "a = alloc 1; b = alloc 2; c = alloc 3\n>free b\nfree a, c\n",
    );
    check(
        "a = alloc 1; b = alloc 2; c = alloc 3\nfree a, b ,c\n",
        3,
        free(2),
        "a = alloc 1; b = alloc 2; c = alloc 3\n>free c\nfree a, b\n",
    );
}

#[test]
fn a_later_free_of_all_elements_leaves_out_what_is_freed_before() {
    check(
        "x[1] = alloc 1; x[2] = alloc 1\nfree x[*]",
        2,
        free(0),
        "x[1] = alloc 1; x[2] = alloc 1\n>free x[1]\nfree x[*]",
    );
    check("x[1] = alloc 1\nfree x[*]\nadvance", 1, free(0), "x[1] = alloc 1\n>free x[1]\nadvance");
    check(
        "x[1] = alloc 1; x[2] = alloc 1\nfree x[1], x[*]",
        2,
        free(1),
        "x[1] = alloc 1; x[2] = alloc 1\n>free x[2]\nfree x[1]",
    );
    check(
        "x[1] = alloc 1; x[2] = alloc 1\nfree x[1], x[*]",
        2,
        free(0),
        "x[1] = alloc 1; x[2] = alloc 1\n>free x[1]\nfree x[*]",
    );
}

#[test]
fn a_later_line_that_cannot_change_is_a_conflict() {
    let conflict = |line| Err(EditError::Conflict { name: "a".to_owned(), line });
    let text = "stream s\na = alloc 1\nadvance\nrecord_stream a s\nfree a";
    assert_eq!(try_insert(text, 1, free(0)), conflict(4));
    let text = "a = alloc 1\nadvance\nrepeat 1 {\n  free a\n}";
    assert_eq!(try_insert(text, 1, free(0)), conflict(4));
    let text = "a = alloc 1\nadvance\nfor t in a { free t }";
    assert_eq!(try_insert(text, 1, free(0)), conflict(3));
}

#[test]
fn streams_are_declared_behind_each_other_and_keep_their_handles() {
    check("", 0, EditAction::DeclareStream, ">stream side\n");
    check(
        "# title\na = alloc 1\nfree a\n",
        2,
        EditAction::DeclareStream,
        "# title\n\n>stream side\n\na = alloc 1\nfree a\n",
    );
    check(
        "# title\r\n\r\na = alloc 1\r\n",
        1,
        EditAction::DeclareStream,
        "# title\r\n\r\n>stream side\r\n\r\na = alloc 1\r\n",
    );
    check(
        "stream side # one\nadvance\nstream t, side2\nadvance side",
        1,
        EditAction::DeclareStream,
        "stream side # one\nadvance\nstream t, side2\n>stream side3\nadvance side",
    );
    let edit = try_insert("repeat 3 { advance }", 1, EditAction::DeclareStream).unwrap();
    assert_eq!((edit.request, edit.added, edit.line), (1, 0, 1));
}

#[test]
fn a_stream_can_be_used_once_it_is_declared() {
    let text = "a = alloc 1\nadvance\nstream s\nadvance s";
    check(
        text,
        2,
        EditAction::RecordStream { tensor: TensorId::new(0), stream: StreamId::new(1) },
        "a = alloc 1\nadvance\nstream s\n>record_stream a s\nadvance s",
    );
    let late = try_insert(text, 1, EditAction::Advance { stream: Some(StreamId::new(1)) });
    assert_eq!(late, Err(EditError::StreamDeclaredLater { name: "s".to_owned(), line: 3 }));
    let unknown = try_insert(text, 1, alloc(Bytes::mib(1), 2));
    assert_eq!(unknown, Err(EditError::UnknownStream { stream: StreamId::new(2) }));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let text = "a = alloc 1\nfree a\n";
    assert_eq!(try_insert(text, 3, EMPTY_CACHE), Err(EditError::OutOfRange { done: 3, requests: 2 }));
    for (done, tensor) in [(0, 0), (2, 0), (1, 1)] {
        let tensor = TensorId::new(tensor);
        let refused = try_insert(text, done, EditAction::Free { tensor });
        assert_eq!(refused, Err(EditError::NotAllocated { tensor }));
    }
    for fraction in [-0.5, 1.5, f64::NAN] {
        let refused = try_insert(text, 1, EditAction::SetFraction { fraction });
        assert_eq!(refused, Err(EditError::FractionOutOfRange));
    }
    let other = Workload::parse("a = alloc 2").unwrap();
    assert_eq!(insert(text, &other, 1, EMPTY_CACHE), Err(EditError::Stale));
    assert!(matches!(insert("fre a", &other, 1, EMPTY_CACHE), Err(EditError::Text(_))));
    let full = try_insert("repeat 5000000 { advance }", 5_000_000, EMPTY_CACHE);
    assert!(matches!(full, Err(EditError::Rejected(_))));
}

fn resized(text: &str, name: &str, size: Bytes) -> Result<(String, usize), EditError> {
    let workload = Workload::parse(text).unwrap();
    let tensors = workload.requests().iter().filter_map(|request| match request {
        Request::Allocate { tensor, .. } => Some(*tensor),
        _ => None,
    });
    let tensor =
        tensors.clone().find(|tensor| workload.tensor_name(*tensor).as_deref() == Some(name)).unwrap();
    resize(text, &workload, tensor, size).map(|resized| (resized.text, resized.tensors))
}

#[test]
fn another_size_changes_the_size_and_nothing_else() {
    let text = "stream s # mine\na = alloc 3 MiB; b = alloc 10000 x 10000 float32 on s  # large\nfree a\n";
    let (after, tensors) = resized(text, "b", Bytes::kib(1536)).unwrap();
    assert_eq!(
        (after.as_str(), tensors),
        ("stream s # mine\na = alloc 3 MiB; b = alloc 1.5 MiB on s  # large\nfree a\n", 1)
    );
    let (after, _) = resized(text, "a", Bytes::new(513)).unwrap();
    assert_eq!(after, text.replace("3 MiB", "513 B"));
    let (after, _) = resized("x = torch.empty(1000, 1000)\ndel x\n", "x", Bytes::mib(2)).unwrap();
    assert_eq!(after, "x = alloc 2 MiB\ndel x\n");
    // A size that does not change leaves the text as it is, if the text writes the size in the form that
    // edits use.
    assert_eq!(resized("a = alloc 3 MiB", "a", Bytes::mib(3)), Ok(("a = alloc 3 MiB".to_owned(), 1)));
}

#[test]
fn another_size_in_a_loop_is_that_of_all_its_tensors() {
    let text = "repeat 3 as i { x[i] = alloc 2 MiB; y = alloc 1 MiB\n free y }\nz = alloc 2 MiB\n";
    let (after, tensors) = resized(text, "x[1]", Bytes::mib(5)).unwrap();
    assert_eq!((after, tensors), (text.replacen("2 MiB", "5 MiB", 1), 3));
    let (after, tensors) = resized(text, "y", Bytes::mib(7)).unwrap();
    assert_eq!((after, tensors), (text.replacen("1 MiB", "7 MiB", 1), 3));
    // One line has two statements with one name, so the edit cannot tell which of them is meant.
    let twice = "repeat 2 { a = alloc 1 MiB; free a; a = alloc 2 MiB; free a }";
    assert_eq!(resized(twice, "a", Bytes::mib(9)), Err(EditError::NotExpressible));
}
