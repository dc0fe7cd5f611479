//! The same run under the rules of another release of PyTorch.

use std::ops::ControlFlow;

use blockyard_lab::{Conditions, Run, SearchStep, WhatIf, candidates, search, what_if};
use blockyard_record::Bytes;
use blockyard_rules::Release;
use blockyard_workload::Workload;

use crate::on;

/// A run of a workload on 1 GiB under a release, beside the same run under others.
fn asked(text: &str, own: Release, others: &[Release]) -> WhatIf {
    let mut run = Run::from_workload("typed", Workload::parse(text).unwrap(), "", Bytes::gib(1));
    run.release = own;
    let conditions: Vec<Conditions> =
        others.iter().map(|release| run.conditions().and_release(*release)).collect();
    what_if(&run, &conditions, 0, &mut on).unwrap()
}

fn ooms(found: &WhatIf) -> Vec<u64> {
    found.rows.iter().map(|row| row.outcome_at_lowest().unwrap().ooms).collect()
}

#[test]
fn a_scope_on_a_pool_lets_the_cache_go_from_2_13_on() {
    let text = "
        pool p
        a = alloc 600 MiB
        free a
        enter p
        b = alloc 700 MiB
        leave p
    ";
    let found = asked(text, Release::V2_11, &Release::ALL);
    assert_eq!(ooms(&found), Release::ALL.map(|release| u64::from(release.scopes_are_captures())));
    assert_eq!(found.baseline.outcome_at_lowest().unwrap().ooms, 1);
    // Nothing differs between releases with equal rules.
    let differs: Vec<bool> = found.differences.iter().map(Option::is_some).collect();
    assert_eq!(differs, Release::ALL.map(|release| !release.scopes_are_captures()));
}

#[test]
fn an_upgrade_to_2_12_takes_the_oldest_of_equal_blocks() {
    let text = "
        a = alloc 1 MiB
        b = alloc 1 MiB
        c = alloc 1 MiB
        d = alloc 1 MiB
        free a, b, c, d
        e = alloc 1 MiB
        free e
        f = alloc 1 MiB
    ";
    let found = asked(text, Release::V2_11, &[Release::V2_12, Release::V2_13]);
    assert_eq!(found.differences[0].as_ref().map(|difference| difference.request), Some(11));
    assert_eq!(found.differences[1], None);
}

#[test]
fn a_setting_that_a_release_does_not_have_is_a_row_with_its_error() {
    let run = Run::from_workload("typed", Workload::parse("a = alloc 1 MiB").unwrap(), "", Bytes::gib(1));
    let conf = Conditions::with_conf("throw_on_cudamalloc_oom:True");
    let conditions = [conf.and_release(Release::V2_11), conf.and_release(Release::V2_12)];
    let found = what_if(&run, &conditions, 0, &mut on).unwrap();
    let error = found.rows[0].outcome.as_ref().unwrap_err().to_string();
    assert!(error.contains("Unrecognized key 'throw_on_cudamalloc_oom'"), "{error}");
    assert!(found.rows[1].outcome.is_ok());
}

#[test]
fn a_search_tries_the_settings_that_the_release_has() {
    let workload = Workload::parse("a = alloc 600 MiB").unwrap();
    let run = Run::from_workload("typed", workload, "", Bytes::gib(1));
    let tried = |release| {
        let conditions = run.conditions().and_release(release);
        let settings = candidates(&run, &conditions);
        let mut go_on = |_: SearchStep<'_>| ControlFlow::Continue(());
        let found = search(&run, &conditions, &settings, &mut go_on).unwrap();
        assert!(found.rows.iter().all(|row| row.outcome.is_ok()), "{release}");
        settings
    };
    let is_of_2_11 = |conf: &String| conf.contains("large_segment_size_mb");
    assert!(tried(Release::default()).iter().any(is_of_2_11));
    let old = tried(Release::V2_9);
    assert!(!old.iter().any(is_of_2_11) && old.contains(&"expandable_segments:True".to_owned()), "{old:?}");
}

#[test]
fn a_limit_of_a_question_is_met_to_the_byte_in_every_release() {
    // 2.11 truncates the product of fraction and device memory, 2.13 rounds it.
    let text = "a = alloc 301 MiB\nb = alloc 100 MiB";
    for limit in [Bytes::mib(402), Bytes::new((402 << 20) - 1)] {
        let mut run =
            Run::from_workload("typed", Workload::parse(text).unwrap(), "", Bytes::new(150_109_880_320));
        run.release = Release::V2_11;
        let conditions: Vec<Conditions> = Release::ALL
            .iter()
            .map(|release| run.conditions().and_limit(limit).and_release(*release))
            .collect();
        let found = what_if(&run, &conditions, 0, &mut on).unwrap();
        assert_eq!(ooms(&found), [u64::from(limit < Bytes::mib(402)); Release::ALL.len()], "{limit}");
    }
}
