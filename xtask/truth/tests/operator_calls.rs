//! A sample of the recorded operator calls, which every run of the tests compares.

use blockyard_truth::operator_calls::{CallOutcome, CallsReport, read, run_line, start};

const SAMPLE: &[u8] = include_bytes!("../../../tests/fixtures/operator-calls/sample.jsonl.gz");

#[test]
fn no_recorded_call_comes_out_wrong_without_a_mark() {
    start().unwrap();
    let mut report = CallsReport::default();
    for line in read(SAMPLE).unwrap() {
        let result = run_line(&line).unwrap();
        assert!(result.outcome != CallOutcome::Wrong, "{} {}: {result:?}", line.op, line.args);
        report.add(&line.op, result.outcome);
    }
    println!("{report}");
    assert_eq!(report.count(CallOutcome::Refused), 0, "refused:\n{report}");
    let identical = report.count(CallOutcome::Identical);
    assert!(identical * 100 >= report.total() * 99, "fewer are identical than before:\n{report}");
}

#[test]
fn a_difference_is_seen() {
    start().unwrap();
    let line = br#"{"op":"softmax:2d","args":{"shape":[4,8],"dtype":"f32","grad":false},"forward":[256]}"#;
    let line = read(line).unwrap().remove(0);
    assert_eq!(run_line(&line).unwrap().outcome, CallOutcome::Wrong, "4 x 8 x 4 bytes are 128");
}
