//! Long work: it continues, reports its progress, and can be cancelled.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use blockyard_record::Bytes;
use blockyard_replay::Progress;
use blockyard_replay::job::{Job, JobError, JobOutput, perform};

use super::fixture;

fn run(text: &str) -> Job {
    Job::Run { title: "long".to_owned(), text: text.to_owned(), conf: String::new(), capacity: Bytes::gib(1) }
}

/// Performs the job until the `last`th report, which cancels it; returns the result and the reports.
fn perform_until(job: &Job, last: usize) -> (Result<JobOutput, JobError>, Vec<Progress>) {
    let mut reports = Vec::new();
    let result = perform(job, &mut |progress| {
        reports.push(progress);
        if reports.len() == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (result, reports)
}

const MILLION: &str = "repeat 500000 { a = alloc 3 MiB; free a }";

#[test]
fn a_million_steps_run_and_report_their_progress() {
    let (result, reports) = perform_until(&run(MILLION), usize::MAX);
    let product = result.unwrap();
    assert_eq!(product.recording.step_count(), 1_000_000);
    assert_eq!(product.recording.event_count(), 1 + 500_000 * 5);
    let breakdown = product.recording.breakdown_after(999_999).unwrap();
    assert_eq!((breakdown.cached, breakdown.allocated()), (Bytes::mib(20), Bytes::ZERO));

    assert!(reports.len() > 10, "{} reports", reports.len());
    let running: Vec<&Progress> = reports.iter().filter(|progress| progress.phase == "running").collect();
    assert!(running.len() > 10);
    assert!(running.is_sorted_by(|one, next| one.done < next.done));
    assert!(running.iter().all(|progress| progress.total == 1_000_000 && progress.done < progress.total));
    let gaps = running.windows(2).map(|pair| pair[1].done - pair[0].done);
    assert!(gaps.max().unwrap() <= 100_000, "a bar that moves");
}

#[test]
fn long_work_is_broken_off_at_any_report() {
    for last in [1, 2, 3, 20] {
        let (result, reports) = perform_until(&run("repeat 100000 { a = alloc 3 MiB; free a }"), last);
        assert_eq!(result.unwrap_err(), JobError::Cancelled, "at report {last}");
        assert_eq!(reports.len(), last, "nothing is reported after that");
    }
}

#[test]
fn opening_is_broken_off_at_any_report() {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let bytes = BYTES.get_or_init(|| fixture("programs/gpt2_varlen"));
    for last in [1, 2, 5] {
        let job = Job::Open { name: "it.jsonl.gz".to_owned(), bytes: bytes.clone(), device: None };
        let (result, reports) = perform_until(&job, last);
        assert_eq!(result.unwrap_err(), JobError::Cancelled, "at report {last}");
        assert_eq!(reports.len(), last);
    }
}

#[test]
fn loops_beyond_every_measure_are_refused_before_they_run() {
    let cases = [
        "repeat 5000001 { empty_cache }",
        "repeat 4294967295 { repeat 4294967295 { empty_cache } }",
        "repeat 99999999999999999999 { empty_cache }",
        "repeat 1000000000 { }",
        "repeat 2000000 { step \"a\" }",
    ];
    for text in cases {
        let (result, _) = perform_until(&run(text), usize::MAX);
        let error = result.expect_err(text);
        assert!(matches!(error, JobError::Text { line: 1, .. }), "{text}: {error:?}");
    }
}

#[test]
fn a_text_with_an_error_says_where_and_settings_say_what() {
    let (result, _) = perform_until(&run("a = alloc 3 MiB\nfree b"), usize::MAX);
    let error = result.unwrap_err();
    assert!(matches!(error, JobError::Text { line: 2, column: 6, length: 1, .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "line 2, column 6: \"b\" is not allocated: no line before this one allocates it"
    );
    let job = Job::Run {
        title: String::new(),
        text: String::new(),
        conf: "max_split_size_mb:1".to_owned(),
        capacity: Bytes::gib(1),
    };
    let error = perform(&job, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
    let message = "CachingAllocator option max_split_size_mb too small, must be >= 20";
    assert_eq!(error, format!("PYTORCH_CUDA_ALLOC_CONF: {message}"));
}

#[test]
fn an_empty_text_is_a_run_without_steps() {
    for text in ["", "# nothing\n"] {
        let (result, _) = perform_until(&run(text), usize::MAX);
        assert_eq!(result.unwrap().recording.step_count(), 0);
    }
}
