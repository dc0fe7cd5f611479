//! Two questions about one run never contradict each other.

use blockyard_lab::{
    Autopsy, Change, ChangeKind, Conditions, Row, Run, autopsy, candidates, plain_candidates, replay_under,
    search, try_change, verdict, what_if,
};
use blockyard_record::Bytes;
use blockyard_workload::{Request, Workload};
use std::ops::ControlFlow;

use crate::cases::CASES;
use crate::oom::{SNAPSHOTS, snapshot};
use crate::{on, on_requests, recorded};

/// Whether a row passes all requests up to and with the given one, counted from 1, at the lower and at the
/// upper bound of its limit.
fn passes(row: &Row, request: u64) -> [bool; 2] {
    [row.outcome_at_lowest(), row.outcome_at_highest()].map(|outcome| {
        outcome.is_some_and(|outcome| outcome.first_oom.as_ref().is_none_or(|oom| oom.request > request))
    })
}

/// The request of an autopsy in the run with a change, which may have more or fewer requests before it.
fn request_after(run: &Run, change: &ChangeKind, request: u64) -> u64 {
    let is_about_pools = |request: &&Request| {
        matches!(
            request,
            Request::CreatePool { .. }
                | Request::EnterPool { .. }
                | Request::LeavePool { .. }
                | Request::DestroyPool { .. }
        )
    };
    match change {
        ChangeKind::FreeTensors { requests, .. } => request + requests.len() as u64,
        ChangeKind::DefaultPool => {
            let before = run.requests().iter().take(usize::try_from(request).unwrap() - 1);
            request - before.filter(is_about_pools).count() as u64
        }
        ChangeKind::Synchronize => request + 1,
        _ => request,
    }
}

/// The row that another question gives for a change: `what_if` for settings and limits, else the trial of the
/// page.
fn row_of(run: &Run, found: &Autopsy, change: &ChangeKind) -> Row {
    let asked = match change {
        ChangeKind::Setting(conf) => found.conditions.and_conf(conf),
        ChangeKind::Limit(limit) => {
            let capacity = Some(found.conditions.capacity_of(run).max(*limit));
            Conditions { capacity, ..found.conditions.and_limit(*limit) }
        }
        _ => {
            let request = found.failure.request.request;
            let tried = try_change(run, &found.conditions, change, request, 0, &mut on).unwrap();
            return tried.rows.into_iter().next().unwrap();
        }
    };
    what_if(run, &[asked], 0, &mut on).unwrap().rows.remove(0)
}

/// Compares an autopsy's statement about every change with the answers of the other questions; returns the
/// number of changes.
fn agree(name: &str, run: &Run, conditions: &Conditions) -> usize {
    let own = what_if(run, std::slice::from_ref(conditions), 0, &mut on).unwrap().rows.remove(0);
    let Some(found) = autopsy(run, conditions, &mut on).unwrap() else {
        assert!(own.fits(), "{name}: what-if goes out of memory, the autopsy does not");
        return 0;
    };
    assert!(!own.fits(), "{name}: the autopsy goes out of memory, what-if does not");
    let changes: Vec<&Change> = found.failure.changes.iter().chain(&found.failure.in_vain).collect();
    for change in &changes {
        let row = row_of(run, &found, &change.kind);
        let request = request_after(run, &change.kind, found.failure.request.request);
        let [low, high] = passes(&row, request);
        assert_eq!(change.proved, low && high, "{name}: {change:?}, {row:?}");
        assert_eq!(change.depends_on_limit, low != high, "{name}: {change:?}, {row:?}");
    }
    for change in &found.failure.changes {
        assert!(change.proved, "{name}: {change:?}");
    }
    changes.len()
}

/// Compares a search with `what_if`: both have the same rows, and the best setting fits at both bounds.
fn searches_agree(name: &str, run: &Run, conditions: &Conditions) {
    let settings = candidates(run, conditions);
    let found = search(run, conditions, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
    let asked: Vec<Conditions> = settings.iter().map(|conf| conditions.and_conf(conf)).collect();
    let rows = what_if(run, &asked, 0, &mut on).unwrap().rows;
    assert_eq!(found.rows, rows, "{name}");
    for place in found.front.iter().chain(&found.best) {
        assert!(found.rows[*place].fits(), "{name}: {:?}", found.rows[*place]);
    }
    if found.best.is_none() && !found.baseline.fits() {
        assert!(
            found.rows.iter().all(|row| !row.fits() || row.conditions.conf.starts_with("backend")),
            "{name}"
        );
        let mut ours = found.rows.iter().filter(|row| !row.conditions.conf.starts_with("backend"));
        let depends = ours.any(Row::depends_on_limit);
        assert_eq!(found.sentence.contains("it depends on the limit"), depends, "{name}: {}", found.sentence);
    }
    // The verdict and the search recommend the same setting, or the search recommends a setting that the
    // verdict does not try.
    let said = verdict(run, conditions, &mut on).unwrap().answer.setting;
    let best = found.best.map(|best| found.rows[best].conditions.conf.clone());
    let is_beyond = best.as_ref().is_some_and(|best| !plain_candidates(run, conditions).contains(best));
    assert!(said == best || (said.is_none() && is_beyond), "{name}: verdict {said:?}, search {best:?}");
    // The page asks for each row by itself.
    for row in found.rows.iter().take(8) {
        let alone = replay_under(run, &row.conditions, 0, &mut on_requests).unwrap();
        assert_eq!(&alone, row, "{name}");
    }
}

#[test]
fn for_every_snapshot_the_autopsy_and_what_if_agree_under_the_implied_limit_and_given_ones() {
    let mut changes = 0;
    for (program, scale) in SNAPSHOTS {
        let run = snapshot(program, scale);
        let own = run.conditions();
        let implied = run.implied_limit().unwrap();
        let name = format!("{program} x {scale}");
        searches_agree(&name, &run, &own);
        for conditions in [
            own.clone(),
            own.and_conf("expandable_segments:True"),
            own.and_conf("garbage_collection_threshold:0.6"),
            own.and_limit(implied.low),
            own.and_limit(Bytes::new(implied.high.get() * 2)),
            Conditions { capacity: Some(implied.high), ..own.clone() },
        ] {
            changes += agree(&format!("{name} under {conditions:?}"), &run, &conditions);
        }
    }
    assert!(changes > 300, "{changes}");
}

#[test]
fn a_search_and_a_verdict_recommend_one_setting_for_runs_that_fit_and_under_limits() {
    for name in ["gpt2_varlen", "gnn_random"] {
        let run = crate::program(name);
        let own = run.conditions();
        for conditions in [
            own.clone(),
            own.and_conf("max_split_size_mb:128"),
            own.and_conf("expandable_segments:True,roundup_power2_divisions:4"),
            own.and_limit(Bytes::gib(2)),
            own.and_limit(Bytes::gib(12)),
        ] {
            searches_agree(&format!("{name} under {conditions:?}"), &run, &conditions);
        }
    }
}

#[test]
fn for_every_constructed_case_the_autopsy_and_what_if_agree() {
    let mut changes = 0;
    for case in CASES {
        let run =
            Run::from_workload(case.name, Workload::parse(case.text).unwrap(), case.conf, Bytes::gib(4));
        let limit = Bytes::mib(case.limit_mib);
        changes += agree(case.name, &run, &run.conditions().and_limit(limit));
        changes += agree(case.name, &run, &Conditions { capacity: Some(limit), ..run.conditions() });
        // The same run as a recording, which implies only bounds of the limit.
        let run = recorded(case.text, case.conf, limit);
        assert!(
            run.implied_limit().is_some_and(|bounds| bounds.low <= limit && limit <= bounds.high),
            "{}",
            case.name
        );
        changes += agree(case.name, &run, &run.conditions());
        changes += agree(case.name, &run, &run.conditions().and_conf("expandable_segments:True"));
    }
    assert!(changes > 800, "{changes}");
}
