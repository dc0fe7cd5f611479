use std::ops::ControlFlow;

use blockyard_lab::{
    Conditions, FindingTopic, LabError, Row, Run, candidates, plain_candidates, replay_under, search, verdict,
};
use blockyard_record::Bytes;
use blockyard_workload::Workload;

use crate::program;

#[test]
fn the_front_is_what_no_row_beats() {
    let run = program("gpt2_varlen");
    let conditions = run.conditions();
    let found = search(&run, &conditions, &candidates(&run, &conditions), &mut |_| ControlFlow::Continue(()))
        .unwrap();
    assert!(found.rows.len() >= 50, "{}", found.rows.len());
    let point = |row: &Row| {
        let outcome = row.outcome_at_lowest().unwrap();
        (outcome.peak_reserved, outcome.device_calls())
    };
    let beats = |one: (Bytes, u64), other: (Bytes, u64)| one.0 <= other.0 && one.1 <= other.1 && one != other;
    // The driver's pool is tried, but the cost of its calls is not counted.
    let counted = || found.rows.iter().filter(|row| !row.conditions.conf.starts_with("backend:"));
    assert_eq!(counted().count() + 1, found.rows.len());
    for (index, row) in counted().enumerate() {
        let is_beaten = counted().any(|other| beats(point(other), point(row)));
        let is_on_front = found.front.iter().any(|front| point(&found.rows[*front]) == point(row));
        assert_eq!(is_on_front, !is_beaten, "{index} {}", row.conditions.conf);
    }
    let best = &found.rows[found.best.unwrap()];
    assert_eq!(found.line, Some(format!("export PYTORCH_CUDA_ALLOC_CONF={}", best.conditions.conf)));
    // A plain setting helps this run, so the recommended setting is the plain one that reserves least.
    let plain = plain_candidates(&run, &conditions);
    let least = counted().filter(|row| plain.contains(&row.conditions.conf)).map(|row| point(row).0).min();
    assert!(plain.contains(&best.conditions.conf));
    assert_eq!(Some(point(best).0), least);
}

#[test]
fn rows_are_those_of_one_replay_each_whatever_the_order_of_the_threads() {
    let run = program("gnn_random");
    let mut settings = candidates(&run, &run.conditions());
    settings.push("no_such:1".to_owned());
    let mut rows = 0;
    let found = search(&run, &run.conditions(), &settings, &mut |step| {
        rows += usize::from(step.row.is_some());
        assert_eq!(step.total, settings.len() + 1);
        ControlFlow::Continue(())
    });
    let found = found.unwrap();
    assert_eq!(rows, settings.len() + 1);
    for (row, conf) in found.rows.iter().zip(&settings) {
        let alone =
            replay_under(&run, &Conditions::with_conf(conf), 0, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(*row, alone);
    }
    assert!(found.rows.last().unwrap().outcome.is_err());
    assert_eq!(found.rows.iter().filter(|row| row.outcome.is_err()).count(), 1);
}

#[test]
fn where_nothing_fits_the_search_says_so() {
    let run = program("gnn_random");
    let limited = run.conditions().and_limit(Bytes::gib(1));
    let found =
        search(&run, &limited, &candidates(&run, &limited), &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(found.front.is_empty() && found.best.is_none() && found.line.is_none());
    assert!(found.sentence.starts_with("no setting lets the run fit"));
}

/// Each iteration frees a tensor in the middle of the segment: with both settings no free block is large enough
/// and small enough, so that the segment grows.
fn swapping(iterations: u32) -> Run {
    let text = format!(
        "x = alloc 300 MiB; free x; x = alloc 400 MiB; free x; x = alloc 500 MiB; free x; x = alloc 600 MiB; q = alloc 40 MiB; free x
         repeat {iterations} as i {{ step \"iteration {{i}}\"
         p = alloc 40 MiB; free q; q = alloc 40 MiB; free p }}"
    );
    Run::from_workload("swapping", Workload::parse(&text).unwrap(), "max_split_size_mb:32", Bytes::gib(8))
}

#[test]
fn a_setting_under_which_memory_grows_with_the_run_is_not_recommended() {
    const PAIR: &str = "max_split_size_mb:32,expandable_segments:True";
    let run = swapping(9);
    let conditions = run.conditions();
    let found = search(&run, &conditions, &candidates(&run, &conditions), &mut |_| ControlFlow::Continue(()))
        .unwrap();
    let best = found.rows[found.best.unwrap()].clone();
    let reserved = |row: &Row| row.outcome_at_lowest().unwrap().peak_reserved;
    let pair = found.rows.iter().find(|row| row.conditions.conf == PAIR).unwrap();
    assert!(reserved(pair) < reserved(&best) && reserved(&best) < reserved(&found.baseline), "{best:?}");
    let against =
        format!("; under {PAIR} less is reserved, but the reserved memory grows from iteration to iteration");
    assert!(found.sentence.contains(&against), "{}", found.sentence);
    assert!(found.sentence.contains(", and no later iteration fails"), "{}", found.sentence);
    // What the program does when it goes on.
    let under = |conf: &str| {
        let row =
            replay_under(&swapping(200), &Conditions::with_conf(conf), 0, &mut |_| ControlFlow::Continue(()));
        reserved(&row.unwrap())
    };
    assert!(under(PAIR) > reserved(pair) && under(&best.conditions.conf) == reserved(&best));
    let verdict = verdict(&run, &conditions, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(verdict.answer.setting, Some(best.conditions.conf));
    let in_vain = verdict.answer.findings.iter().filter(|finding| finding.about == FindingTopic::DoesNotHelp);
    let texts: Vec<&str> = in_vain.map(|finding| finding.text.as_str()).collect();
    assert!(
        texts.iter().any(|text| text.contains(PAIR) && text.contains(", but the reserved memory grows")),
        "{texts:?}"
    );
}

#[test]
fn a_search_can_be_cancelled() {
    let run = program("gnn_random");
    let cancelled =
        search(
            &run,
            &run.conditions(),
            &candidates(&run, &run.conditions()),
            &mut |_| ControlFlow::Break(()),
        );
    assert!(matches!(cancelled, Err(LabError::Cancelled)));
}
