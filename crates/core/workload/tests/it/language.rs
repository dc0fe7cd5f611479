use blockyard_record::{Bytes, PoolId, StreamId};
use blockyard_workload::{ParseErrorKind, Request, TensorId, Workload};
use expect_test::{Expect, expect};

use crate::describe;

fn check(text: &str, expected: &Expect) {
    expected.assert_eq(&describe(&Workload::parse(text).unwrap()));
}

fn size(text: &str) -> u64 {
    match Workload::parse(&format!("a = alloc {text}")).unwrap().requests() {
        [Request::Allocate { size, .. }] => size.get(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn every_statement_makes_its_request() {
    check(
        "stream side\n\
         a = alloc 3 MiB; b = alloc 512 KiB on side   # two on a line\n\
         record_stream b default\r\n\
         free a\n\n\
         advance side; advance\n\
         empty_cache;; set_fraction 0.5; reset_peak\n\
         reset_accumulated; free b;",
        &expect![[r"
            2: #0 a = 3145728 on default
            2: #1 b = 524288 on side
            3: record #1 b on default
            4: free #0 a
            6: advance side
            6: advance all
            7: EmptyCache
            7: SetFraction { fraction: 0.5 }
            7: ResetPeak
            8: ResetAccumulated
            8: free #1 b
        "]],
    );
}

#[test]
fn pools_and_settings_make_their_requests() {
    check(
        "pool p; pool lend use_on_oom # lends\npool both no_split use_on_oom\n\
         enter p; a = alloc 1; leave p\n\
         repeat 2 { enter lend; leave lend }\n\
         free a; destroy p; leave p\n\
         set roundup_power2_divisions:[256:1, >:4] ; set # back to the defaults\nset expandable_segments:True",
        &expect![[r#"
            1: CreatePool { pool_id: PoolId { capture: 0, user: 1 }, never_splits: false, serves_on_oom: false }
            1: CreatePool { pool_id: PoolId { capture: 0, user: 2 }, never_splits: false, serves_on_oom: true }
            2: CreatePool { pool_id: PoolId { capture: 0, user: 3 }, never_splits: true, serves_on_oom: true }
            3: EnterPool { pool_id: PoolId { capture: 0, user: 1 } }
            3: #0 a = 1 on default
            3: LeavePool { pool_id: PoolId { capture: 0, user: 1 } }
            4: EnterPool { pool_id: PoolId { capture: 0, user: 2 } }
            4: LeavePool { pool_id: PoolId { capture: 0, user: 2 } }
            4: EnterPool { pool_id: PoolId { capture: 0, user: 2 } }
            4: LeavePool { pool_id: PoolId { capture: 0, user: 2 } }
            5: free #0 a
            5: DestroyPool { pool_id: PoolId { capture: 0, user: 1 } }
            5: LeavePool { pool_id: PoolId { capture: 0, user: 1 } }
            6: Set { settings: 0 }
            6: Set { settings: 1 }
            7: Set { settings: 2 }
        "#]],
    );
}

#[test]
fn pools_and_settings_keep_their_texts() {
    let text = "pool lend\nrepeat 2 { set a:[1, 2] }\nset\nset  x y";
    let workload = Workload::parse(text).unwrap();
    let pool = |user| workload.pool_name(PoolId { capture: 0, user });
    assert_eq!((pool(0), pool(1), pool(2)), (None, Some("lend"), None));
    assert_eq!(workload.pool_name(PoolId { capture: 1, user: 0 }), None);
    let texts: Vec<_> = (0..4).map(|number| workload.settings(number)).collect();
    assert_eq!(texts, [Some("a:[1, 2]"), Some(""), Some("x y"), None]);
    assert!(matches!(workload.requests()[2], Request::Set { settings: 0 }), "a loop repeats its text");
}

#[test]
fn pools_streams_and_tensors_have_names_of_their_own() {
    let workload =
        Workload::parse("stream a; pool a; a = alloc 1 on a; enter a; free a; no_split = alloc 1").unwrap();
    assert_eq!(workload.requests().len(), 5);
}

#[test]
fn lists_make_one_request_for_each_item_in_order() {
    check(
        "stream s, t\na = alloc 1; b = alloc 2 on t\nrecord_stream a, b s\nfree b, a\nadvance t, default",
        &expect![[r"
            2: #0 a = 1 on default
            2: #1 b = 2 on t
            3: record #0 a on s
            3: record #1 b on s
            4: free #1 b
            4: free #0 a
            5: advance t
            5: advance default
        "]],
    );
}

#[test]
fn loops_count_up_and_down_and_from_where_they_begin() {
    check(
        "repeat 2 as i { x[i] = alloc 1 }\n\
         repeat 2 as i from 1 {\n  y[i][0] = alloc 2; step \"round {i}\"\n}\n\
         repeat 2 as i down { free x[i] }\n\
         repeat 2 as i from 1 down { free y[i][0] }\n\
         repeat 2 { a = alloc 3; free a }\nrepeat 0 { free nothing }",
        &expect![[r"
            1: #0 x[0] = 1 on default
            1: #1 x[1] = 1 on default
            3: #2 y[1][0] = 2 on default
            -- round 1
            3: #3 y[2][0] = 2 on default
            -- round 2
            5: free #1 x[1]
            5: free #0 x[0]
            6: free #3 y[2][0]
            6: free #2 y[1][0]
            7: #4 a = 3 on default
            7: free #4 a
            7: #5 a = 3 on default
            7: free #5 a
        "]],
    );
}

#[test]
fn loops_nest_and_an_inner_variable_hides_an_outer_one() {
    check(
        "repeat 2 as i { repeat 2 as j { x[i][j] = alloc 1 }; repeat 1 as i from 7 { step \"{i}\" }; step \"{i}\" }",
        &expect![[r"
            1: #0 x[0][0] = 1 on default
            1: #1 x[0][1] = 1 on default
            -- 7
            -- 0
            1: #2 x[1][0] = 1 on default
            1: #3 x[1][1] = 1 on default
            -- 7
            -- 1
        "]],
    );
}

#[test]
fn loops_over_names_allocate_and_free_them() {
    check(
        "for t in a, x[1] { t = alloc 1; step \"{t}\"; for u in t { u[5] = alloc 2 } }\nfor t in a, x[1], a[5] { free t }",
        &expect![[r"
            1: #0 a = 1 on default
            -- a
            1: #1 a[5] = 2 on default
            1: #2 x[1] = 1 on default
            -- x[1]
            1: #3 x[1][5] = 2 on default
            2: free #0 a
            2: free #2 x[1]
            2: free #1 a[5]
        "]],
    );
}

#[test]
fn all_elements_are_freed_in_ascending_order_and_the_plain_name_stays() {
    check(
        "x = alloc 1; x[10] = alloc 1; x[2] = alloc 1; x[2][1] = alloc 1; y[1] = alloc 1\nfree x[2]\nfree x[*]",
        &expect![[r"
            1: #0 x = 1 on default
            1: #1 x[10] = 1 on default
            1: #2 x[2] = 1 on default
            1: #3 x[2][1] = 1 on default
            1: #4 y[1] = 1 on default
            2: free #2 x[2]
            3: free #3 x[2][1]
            3: free #1 x[10]
        "]],
    );
}

#[test]
fn a_name_can_be_used_again_after_its_free() {
    check(
        "a = alloc 1; free a; a = alloc 2",
        &expect![[r"
            1: #0 a = 1 on default
            1: free #0 a
            1: #1 a = 2 on default
        "]],
    );
}

#[test]
fn labels_keep_their_text_to_the_letter() {
    let workload = Workload::parse(
        r##"repeat 1 as i { step "a \"b\" \\ {{i}} { i } # é \n" } step "" "##
            .replace("} step", "}\nstep")
            .as_str(),
    );
    let labels = workload.unwrap().labels().to_vec();
    assert_eq!(labels, [(0, r#"a "b" \ {i} 0 # é \n"#.to_owned()), (0, String::new())]);
}

#[test]
fn names_may_be_words_that_mean_something_elsewhere() {
    check(
        "x = alloc 2 x 3 int8\non = alloc 1; MiB = alloc 1; default = alloc 1; in = alloc 1\nenc.0.w = alloc 1\nfree x",
        &expect![[r"
            1: #0 x = 6 on default
            2: #1 on = 1 on default
            2: #2 MiB = 1 on default
            2: #3 default = 1 on default
            2: #4 in = 1 on default
            3: #5 enc.0.w = 1 on default
            4: free #0 x
        "]],
    );
}

#[test]
fn sizes_are_exact() {
    let cases = [
        ("0", 0),
        ("1", 1),
        ("1_000", 1000),
        ("512B", 512),
        ("3MiB", 3 << 20),
        ("3 mib", 3 << 20),
        ("1.5 GiB", 3 << 29),
        ("2.0", 2),
        ("1048576 TiB", 1 << 60),
        ("1152921504606846976", 1 << 60),
        ("18446744073709551615", u64::MAX),
        ("10000 x 10000 float32", 400_000_000),
        ("10000x10000 float32", 400_000_000),
        ("10_000 × 10_000 float32", 400_000_000),
        ("7 float64", 56),
        ("2 x 3 x 4 x 5 x 6 bfloat16", 1440),
        ("0 x 18446744073709551615 x 2 bool", 0),
    ];
    for (text, expected) in cases {
        assert_eq!(size(text), expected, "{text}");
    }
}

#[test]
fn streams_are_numbered_in_order() {
    let workload = Workload::parse("stream b\nstream a, c").unwrap();
    let streams = workload.streams().map(|(id, name)| (id.get(), name)).collect::<Vec<_>>();
    assert_eq!(streams, [(1, "b"), (2, "a"), (3, "c")]);
    assert_eq!(workload.stream_name(StreamId::DEFAULT), Some("default"));
    assert_eq!(workload.stream_name(StreamId::new(3)), Some("c"));
    assert_eq!(workload.stream_name(StreamId::new(4)), None);
    assert_eq!(workload.stream_name(StreamId::new(u64::MAX)), None);
}

#[test]
fn requests_from_elsewhere_have_no_names_and_no_lines() {
    let tensor = TensorId::new(0);
    let requests = vec![Request::Allocate { tensor, size: Bytes::mib(1), stream: StreamId::new(9) }];
    let mut workload = Workload::from_requests(requests.clone());
    workload.set_labels(vec![(1, "b".to_owned()), (0, "a".to_owned()), (1, "c".to_owned())]);
    assert_eq!(workload.requests(), requests);
    assert_eq!(workload.line(0), None);
    assert_eq!(workload.tensor_name(tensor), None);
    let labels = workload.labels().iter().map(|(_, label)| label.as_str()).collect::<String>();
    assert_eq!(labels, "abc");
}

#[test]
fn a_text_without_statements_is_an_empty_workload() {
    for text in ["", "\n", "# nothing", ";;\n;", "\u{feff}", "   \r\n\t"] {
        assert_eq!(Workload::parse(text).unwrap(), Workload::default(), "{text:?}");
    }
}

#[test]
fn a_million_steps_are_parsed() {
    let workload = Workload::parse("repeat 1000000 { t = alloc 1 MiB; free t }").unwrap();
    assert_eq!(workload.requests().len(), 2_000_000);
    let workload = Workload::parse("repeat 300000 as i { t[i] = alloc 1 MiB }\nfree t[*]").unwrap();
    assert_eq!(workload.requests().len(), 600_000);
    assert_eq!(workload.tensor_name(TensorId::new(299_999)).as_deref(), Some("t[299999]"));
}

#[test]
fn loops_that_are_too_long_fail_before_they_run() {
    let deep = format!("{}{}", "repeat 1000000000 {".repeat(20), "}".repeat(20));
    let texts = [
        "repeat 1000000000 { repeat 1000000000 { a = alloc 1; free a } }",
        "repeat 99999999999999999999999 { empty_cache }",
        "repeat 5000001 { empty_cache }",
        "repeat 2500001 { advance; empty_cache }",
        "repeat 4000000000 { }",
        "repeat 1000001 { step \"x\" }",
        &deep,
    ];
    for text in texts {
        let error = Workload::parse(text).unwrap_err();
        let is_too_long = matches!(
            error.kind(),
            ParseErrorKind::TooManyRequests | ParseErrorKind::TooManyRounds | ParseErrorKind::TooManyLabels
        );
        assert!(is_too_long, "{text}: {error}");
        // The error is at the loop, before it runs. An error of a running loop would be at the first
        // statement beyond the limit.
        let (line, column, _) = error.position();
        assert!(line == 1 && text[column as usize - 1..].starts_with("repeat"), "{text}: {error}");
    }
}

#[test]
fn a_workload_is_as_long_as_it_may_be() {
    let error = Workload::parse("repeat 5000000 { advance }\nadvance").unwrap_err();
    assert_eq!((error.kind(), error.position()), (&ParseErrorKind::TooManyRequests, (2, 1, 7)));
    // Frees of all elements are only counted when they run.
    let text = "x[0] = alloc 1; x[1] = alloc 1; repeat 4999997 { advance }\nfree x[*]";
    let error = Workload::parse(text).unwrap_err();
    assert_eq!((error.kind(), error.position()), (&ParseErrorKind::TooManyRequests, (2, 1, 9)));
}

#[test]
fn a_text_knows_its_length_without_running_its_loops() {
    let text = "step \"x\"\nrepeat 1000 as i { repeat 1000 as j { x[i][j] = alloc 512 } }\nfree x[*]";
    assert_eq!(Workload::length(text).unwrap(), 1_000_000 + 1 + 1);
    // A running loop would report that no tensor is left to free.
    let text = "x = alloc 1; repeat 1000 { repeat 1000 { free x } }";
    assert!(Workload::parse(text).is_err());
    assert_eq!(Workload::length(text).unwrap(), 1 + 1_000_000);
    assert!(Workload::length("repeat 3 {").is_err());
}
