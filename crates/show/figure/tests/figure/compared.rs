//! Two runs of the same requests on one scale.

use blockyard_figure::{
    AxisRange, ComparedCurve, ComparedTimelines, CurvePart, Mark, Size, compared_timelines,
};
use blockyard_record::Bytes;

fn curve(reserved: &[u64]) -> ComparedCurve {
    let part = |(until, mib): (u64, &u64)| CurvePart {
        until,
        allocated: Bytes::mib(mib.div_ceil(2)),
        reserved: Bytes::mib(*mib),
    };
    ComparedCurve { parts: (1..).zip(reserved).map(part).collect(), oom: None }
}

fn texts_under(limit: (Bytes, Bytes), before: &[u64], after: &[u64]) -> Vec<String> {
    let limit = Some(limit);
    let compared = ComparedTimelines { before: curve(before), after: curve(after), requests: 3, limit };
    let scene = compared_timelines(&compared, AxisRange::WHOLE, Size::new(480.0, 190.0));
    let marks = scene.marks.into_iter();
    marks.filter_map(|mark| if let Mark::Text { text, .. } = mark { Some(text) } else { None }).collect()
}

#[test]
fn a_part_shows_its_requests_and_no_curve_from_outside() {
    let compared = ComparedTimelines {
        before: curve(&[20, 40, 60, 80]),
        after: curve(&[20, 40, 40, 40]),
        requests: 4,
        limit: None,
    };
    let part = AxisRange { from: 0.5, to: 1.0 };
    let scene = compared_timelines(&compared, part, Size::new(480.0, 190.0));
    let texts: Vec<&str> = scene
        .marks
        .iter()
        .filter_map(|mark| if let Mark::Text { text, .. } = mark { Some(text.as_str()) } else { None })
        .collect();
    assert!(texts.contains(&"requests") && texts.contains(&"4") && !texts.contains(&"1"), "{texts:?}");
    let paths = scene.marks.iter().filter_map(|mark| match mark {
        Mark::Path { points, .. } => Some(points),
        _ => None,
    });
    // The levels of the third and the fourth request, and not those of the first two.
    let levels = paths.map(|points| points.windows(2).filter(|pair| pair[0].x_px < pair[1].x_px).count());
    assert_eq!(levels.max(), Some(2));
}

#[test]
fn both_bounds_of_a_limit_are_named_where_the_band_between_them_has_room() {
    let under =
        |low: u64, high: u64| texts_under((Bytes::mib(low), Bytes::mib(high)), &[20, 40, 40], &[20, 40, 40]);
    let has = |words: &[String], text: &str| words.iter().any(|word| word == text);
    let wide = under(40, 60);
    assert!(has(&wide, "limit at least 40 MiB") && has(&wide, "limit at most 60 MiB"), "{wide:?}");
    let narrow = under(40, 41);
    assert!(has(&narrow, "limit between 40 MiB and 41 MiB"), "{narrow:?}");
    assert!(has(&under(40, 40), "limit 40 MiB"));
}
