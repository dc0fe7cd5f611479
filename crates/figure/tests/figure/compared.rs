//! Two runs of the same requests on one scale, and their difference.

use blockyard_figure::{ComparedCurve, ComparedTimelines, CurvePart, Mark, Size, compared_timelines};
use blockyard_record::Bytes;

fn curve(reserved: &[u64]) -> ComparedCurve {
    let part = |(until, mib): (u64, &u64)| CurvePart {
        until,
        allocated: Bytes::mib(mib.div_ceil(2)),
        reserved: Bytes::mib(*mib),
    };
    ComparedCurve { parts: (1..).zip(reserved).map(part).collect(), oom: None }
}

fn texts(before: &[u64], after: &[u64], is_difference: bool) -> Vec<String> {
    let compared = ComparedTimelines { before: curve(before), after: curve(after), requests: 3, limit: None };
    let scene = compared_timelines(&compared, is_difference, Size::new(480.0, 190.0));
    let marks = scene.marks.into_iter();
    marks.filter_map(|mark| if let Mark::Text { text, .. } = mark { Some(text) } else { None }).collect()
}

#[test]
fn a_difference_of_nothing_says_so_in_the_place_of_axes() {
    let words = texts(&[20, 40, 40], &[20, 40, 40], true);
    assert_eq!(words, ["Both reserve the same bytes after every request."]);
    let words = texts(&[20, 40, 40], &[], true);
    assert_eq!(words, ["There is nothing to compare: one of the runs has no memory over time."]);
    let words = texts(&[20, 40, 40], &[20, 40, 60], true);
    assert!(words.contains(&"more reserved after".to_owned()), "{words:?}");
    assert!(texts(&[20, 40, 40], &[20, 40, 40], false).contains(&"reserved before".to_owned()));
}
