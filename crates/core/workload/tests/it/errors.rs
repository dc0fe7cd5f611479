use blockyard_workload::Workload;
use expect_test::{Expect, expect};

/// Checks the message, and the place by underlining it.
fn check(text: &str, expected: &Expect) {
    let error = Workload::parse(text).unwrap_err();
    let (line, column, length) = error.position();
    let source = text.lines().nth(line as usize - 1).unwrap_or_default();
    let underline = " ".repeat(column as usize - 1) + &"^".repeat(length as usize);
    expected.assert_eq(&format!("{source}\n{underline}\n{error}\n"));
}

macro_rules! errors {
    ($($name:ident: $text:expr => $expected:expr;)*) => {
        $(
            #[test]
            fn $name() {
                check($text, &$expected);
            }
        )*
    };
}

errors! {
    wrong_unit: "\n\na = alloc 3 MBB" => expect![[r#"
        a = alloc 3 MBB
                  ^^^^^
        line 3, column 11: expected a size such as "3 MiB", found "3 MBB"
    "#]];
    missing_size: "a = alloc" => expect![[r#"
        a = alloc
                 ^
        line 1, column 10: expected a size such as "3 MiB", found the end of the text
    "#]];
    negative_size: "a = alloc -3" => expect![[r#"
        a = alloc -3
                  ^
        line 1, column 11: expected a size such as "3 MiB", found "-"
    "#]];
    part_of_a_byte: "a = alloc 0.3 KiB on side" => expect![[r#"
        a = alloc 0.3 KiB on side
                  ^^^^^^^
        line 1, column 11: "0.3 KiB" is not a whole number of bytes
    "#]];
    size_too_large: "a = alloc 18446744073709551616" => expect![[r#"
        a = alloc 18446744073709551616
                  ^^^^^^^^^^^^^^^^^^^^
        line 1, column 11: "18446744073709551616" is more than 2^64-1 bytes, the largest size there is
    "#]];
    size_too_large_with_unit: "a = alloc 16 EiB" => expect![[r#"
        a = alloc 16 EiB
                  ^^^^^^
        line 1, column 11: "16 EiB" is more than 2^64-1 bytes, the largest size there is
    "#]];
    shape_too_large: "a = alloc 4294967296 x 4294967296 int8" => expect![[r#"
        a = alloc 4294967296 x 4294967296 int8
                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        line 1, column 11: "4294967296 x 4294967296 int8" is more than 2^64-1 bytes, the largest size there is
    "#]];
    shape_without_dtype: "a = alloc 3 x 4; free a" => expect![[r#"
        a = alloc 3 x 4; free a
                       ^
        line 1, column 16: expected a dtype such as "float32", found ";"
    "#]];
    shape_with_decimals: "a = alloc 3 x 4.5 int8" => expect![[r#"
        a = alloc 3 x 4.5 int8
                      ^^^
        line 1, column 15: expected a whole number, found "4.5"
    "#]];
    shape_with_six_sides: "a = alloc 1 x 1 x 1 x 1 x 1 x 1 int8" => expect![[r#"
        a = alloc 1 x 1 x 1 x 1 x 1 x 1 int8
                                      ^
        line 1, column 31: a shape has at most 5 dimensions
    "#]];
    unknown_pool: "pool a; pool b\n enter p" => expect![[r#"
         enter p
               ^
        line 2, column 8: there is no pool "p" here: known are a, b; declare it before with "pool p"
    "#]];
    unknown_pool_without_any: "leave p" => expect![[r#"
        leave p
              ^
        line 1, column 7: there is no pool "p" here; declare it before with "pool p"
    "#]];
    pool_declared_twice: "pool p\npool p no_split" => expect![[r#"
        pool p no_split
             ^
        line 2, column 6: the pool "p" exists already, since line 1
    "#]];
    pool_in_a_loop: "repeat 2 { pool p }" => expect![[r#"
        repeat 2 { pool p }
                   ^^^^
        line 1, column 12: a pool is made once, outside of loops
    "#]];
    pool_without_name: "pool" => expect![[r#"
        pool
            ^
        line 1, column 5: expected a name for the pool, found the end of the text
    "#]];
    pool_with_a_reserved_name: "pool free" => expect![[r#"
        pool free
             ^^^^
        line 1, column 6: "free" is a word of the language and cannot be a name
    "#]];
    pool_with_another_option: "pool p nosplit" => expect![[r#"
        pool p nosplit
               ^^^^^^^
        line 1, column 8: expected "no_split", "use_on_oom" or the end of the statement, found "nosplit"
    "#]];
    pool_after_its_end: "pool p\ndestroy p; enter p" => expect![[r#"
        destroy p; enter p
                         ^
        line 2, column 18: the pool "p" does not exist any more: line 2 destroyed it
    "#]];
    pool_destroyed_in_a_loop: "pool p\nrepeat 2 { destroy p }" => expect![[r#"
        repeat 2 { destroy p }
                           ^
        line 2, column 20: the pool "p" does not exist any more: line 2 destroyed it
    "#]];
    words_behind_a_pool: "pool p\nenter p now" => expect![[r#"
        enter p now
                ^^^
        line 2, column 9: expected the end of the statement: a new line or ";", found "now"
    "#]];
    settings_with_an_open_quote: "set \"a:1" => expect![[r#"
        set "a:1
            ^^^^
        line 1, column 5: expected a closing quote on the same line, found "a:1
    "#]];
    misspelled_statement: "a = alloc 1\n  fre a" => expect![[r#"
          fre a
          ^^^
        line 2, column 3: expected a statement such as "a = alloc 3 MiB" or "free a", found "fre"
    "#]];
    missing_equals: "a alloc 3" => expect![[r#"
        a alloc 3
          ^^^^^
        line 1, column 3: expected "=", as in "a = alloc 3 MiB", found "alloc"
    "#]];
    missing_alloc: "a = 3 MiB" => expect![[r#"
        a = 3 MiB
            ^
        line 1, column 5: expected "alloc" and a size, found "3"
    "#]];
    alloc_without_name: "alloc 3 MiB" => expect![[r#"
        alloc 3 MiB
        ^^^^^
        line 1, column 1: expected a name and "=" first, as in "a = alloc 3 MiB", found "alloc"
    "#]];
    no_statement: "3 MiB" => expect![[r#"
        3 MiB
        ^
        line 1, column 1: expected a statement such as "a = alloc 3 MiB" or "free a", found "3"
    "#]];
    reserved_name: "a = alloc 1; free free" => expect![[r#"
        a = alloc 1; free free
                          ^^^^
        line 1, column 19: "free" is a word of the language and cannot be a name
    "#]];
    missing_name: "free" => expect![[r#"
        free
            ^
        line 1, column 5: expected a name, found the end of the text
    "#]];
    trailing_comma: "a = alloc 1\nfree a," => expect![[r#"
        free a,
               ^
        line 2, column 8: expected a name, found the end of the text
    "#]];
    words_behind_a_statement: "empty_cache now" => expect![[r#"
        empty_cache now
                    ^^^
        line 1, column 13: expected the end of the statement: a new line or ";", found "now"
    "#]];
    columns_count_characters: "é = alloc 1; ü = alloc 1; ü[x] = alloc 1" => expect![[r#"
        é = alloc 1; ü = alloc 1; ü[x] = alloc 1
                                    ^
        line 1, column 29: no loop around this has a variable "x"
    "#]];
    still_allocated: "a = alloc 1\n\na = alloc 2" => expect![[r#"
        a = alloc 2
        ^
        line 3, column 1: "a" is still allocated, since line 1: free it first
    "#]];
    still_allocated_in_a_loop: "repeat 2 {\n  x[3] = alloc 1\n}" => expect![[r#"
          x[3] = alloc 1
          ^^^^
        line 2, column 3: "x[3]" is still allocated, by this very line: free it first, in a loop before the next round
    "#]];
    never_allocated: "free b" => expect![[r#"
        free b
             ^
        line 1, column 6: "b" is not allocated: no line before this one allocates it
    "#]];
    already_freed: "a = alloc 1\nfree a\nstep \"x\"\nfree a" => expect![[r#"
        free a
             ^
        line 4, column 6: "a" is not allocated any more: line 2 freed it
    "#]];
    record_of_a_freed_name: "a = alloc 1\nfree a; record_stream a default" => expect![[r#"
        free a; record_stream a default
                              ^
        line 2, column 23: "a" is not allocated any more: line 2 freed it
    "#]];
    no_elements: "x = alloc 1; free x[*]" => expect![[r#"
        x = alloc 1; free x[*]
                          ^^^^
        line 1, column 19: no element of "x" is allocated here
    "#]];
    unknown_stream: "stream side\nstream copy\na = alloc 1 on sid" => expect![[r#"
        a = alloc 1 on sid
                       ^^^
        line 3, column 16: there is no stream "sid" here: known are default, side, copy; declare it before with "stream sid"
    "#]];
    missing_stream: "a = alloc 1\nrecord_stream a" => expect![[r#"
        record_stream a
                       ^
        line 2, column 16: expected a stream such as "default", found the end of the text
    "#]];
    stream_declared_twice: "stream side\nstream side" => expect![[r#"
        stream side
               ^^^^
        line 2, column 8: the stream "side" exists already, since line 1
    "#]];
    default_stream_declared: "stream default" => expect![[r#"
        stream default
               ^^^^^^^
        line 1, column 8: the stream "default" exists already
    "#]];
    stream_in_a_loop: "repeat 2 { stream side }" => expect![[r#"
        repeat 2 { stream side }
                   ^^^^^^
        line 1, column 12: a stream is declared once, outside of loops
    "#]];
    fraction_too_large: "set_fraction 1.5" => expect![[r#"
        set_fraction 1.5
                     ^^^
        line 1, column 14: a memory fraction lies between 0 and 1, found "1.5"
    "#]];
    fraction_missing: "set_fraction half" => expect![[r#"
        set_fraction half
                     ^^^^
        line 1, column 14: expected a number from 0 to 1 such as "0.5", found "half"
    "#]];
    label_without_quotes: "step forward" => expect![[r#"
        step forward
             ^^^^^^^
        line 1, column 6: expected a label in quotes, as in step "setup", found "forward"
    "#]];
    label_not_closed: "step \"forward\nfree a" => expect![[r#"
        step "forward
             ^^^^^^^^
        line 1, column 6: expected a closing quote on the same line, found "forward
    "#]];
    label_with_an_open_brace: "step \"forward {i\"" => expect![[r#"
        step "forward {i"
                      ^^
        line 1, column 15: expected a variable in braces such as "{i}" (write "{{" for a brace), found "{i"
    "#]];
    label_with_an_unknown_variable: "repeat 2 as i { step \"forward {j}\" }" => expect![[r#"
        repeat 2 as i { step "forward {j}" }
                                      ^^^
        line 1, column 31: no loop around this has a variable "j"
    "#]];
    index_unknown: "x[i] = alloc 1" => expect![[r#"
        x[i] = alloc 1
          ^
        line 1, column 3: no loop around this has a variable "i"
    "#]];
    index_is_a_name: "for t in a { x[t] = alloc 1 }" => expect![[r#"
        for t in a { x[t] = alloc 1 }
                       ^
        line 1, column 16: "t" stands for tensors here and cannot be an index
    "#]];
    index_too_large: "x[4294967295] = alloc 1" => expect![[r#"
        x[4294967295] = alloc 1
          ^^^^^^^^^^
        line 1, column 3: an index is at most 4294967294
    "#]];
    index_not_closed: "x[3 = alloc 1" => expect![[r#"
        x[3 = alloc 1
            ^
        line 1, column 5: expected "]", found "="
    "#]];
    indices_too_many: "x[1][2][3] = alloc 1" => expect![[r#"
        x[1][2][3] = alloc 1
               ^
        line 1, column 8: a name has at most 2 indices
    "#]];
    indices_too_many_through_a_variable: "for t in a[1] { t[1][2] = alloc 1 }" => expect![[r#"
        for t in a[1] { t[1][2] = alloc 1 }
                            ^
        line 1, column 21: a name has at most 2 indices
    "#]];
    count_missing: "repeat { empty_cache }" => expect![[r#"
        repeat { empty_cache }
               ^
        line 1, column 8: expected how often to repeat, such as "3", found "{"
    "#]];
    count_with_decimals: "repeat 1.5 { empty_cache }" => expect![[r#"
        repeat 1.5 { empty_cache }
               ^^^
        line 1, column 8: expected how often to repeat, such as "3", found "1.5"
    "#]];
    loop_without_brace: "repeat 3\nempty_cache" => expect![[r#"
        repeat 3
                ^
        line 1, column 9: expected "{" and the statements to repeat, found the end of the line
    "#]];
    loop_not_closed: "empty_cache\nrepeat 2 {\n  repeat 3 {\n  }\n" => expect![[r#"
        repeat 2 {
        ^^^^^^^^
        line 2, column 1: the loop that starts here is never closed: expected "}", found the end of the text
    "#]];
    closed_without_loop: "empty_cache\n} free a" => expect![[r#"
        } free a
        ^
        line 2, column 1: this "}" closes nothing
    "#]];
    statement_behind_a_loop: "repeat 2 { empty_cache } empty_cache" => expect![[r#"
        repeat 2 { empty_cache } empty_cache
                                 ^^^^^^^^^^^
        line 1, column 26: expected the end of the statement: a new line or ";", found "empty_cache"
    "#]];
    loop_too_long: "empty_cache\nrepeat 3 {\n  repeat 5_000_001 as i { empty_cache }\n}" => expect![[r#"
          repeat 5_000_001 as i { empty_cache }
          ^^^^^^^^^^^^^^^^^^^^^
        line 3, column 3: this makes more than 5,000,000 requests, the most a workload may have
    "#]];
    outer_loop_too_long: "repeat 3000000 {\n  repeat 2 { empty_cache }\n}" => expect![[r#"
        repeat 3000000 {
        ^^^^^^^^^^^^^^
        line 1, column 1: this makes more than 5,000,000 requests, the most a workload may have
    "#]];
    loop_without_requests_too_long: "repeat 5000001 { }" => expect![[r#"
        repeat 5000001 { }
        ^^^^^^^^^^^^^^
        line 1, column 1: these loops run more than 5,000,000 times in all, the limit of a text
    "#]];
    labels_too_many: "repeat 1000001 { step \"x\"; empty_cache }" => expect![[r#"
        repeat 1000001 { step "x"; empty_cache }
        ^^^^^^^^^^^^^^
        line 1, column 1: this makes more than a million labels or more than 64 MiB of them
    "#]];
    loop_counts_beyond_indices: "repeat 2 as i from 4294967293 { x[i] = alloc 1 }" => expect![[r#"
        repeat 2 as i from 4294967293 { x[i] = alloc 1 }
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        line 1, column 1: an index is at most 4294967294
    "#]];
    for_without_in: "for t { free t }" => expect![[r#"
        for t { free t }
              ^
        line 1, column 7: expected "in" and a list of names, found "{"
    "#]];
    for_over_elements: "for t in x[*] { free t }" => expect![[r#"
        for t in x[*] { free t }
                   ^
        line 1, column 12: expected a number or the variable of a loop, found "*"
    "#]];
    odd_character: "a = alloc 1 @ side" => expect![[r#"
        a = alloc 1 @ side
                    ^
        line 1, column 13: expected the end of the statement: a new line or ";", found "@"
    "#]];
    long_text_is_shortened: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" => expect![[r#"
        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        line 1, column 1: expected a statement such as "a = alloc 3 MiB" or "free a", found "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    "#]];
}

#[test]
fn loops_nest_to_a_limit() {
    let nested = |depth: usize| format!("{}{}", "repeat 1 {".repeat(depth), "}".repeat(depth));
    assert!(Workload::parse(&nested(32)).is_ok());
    let error = Workload::parse(&nested(100_000)).unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 321: loops may be nested 32 deep");
}
