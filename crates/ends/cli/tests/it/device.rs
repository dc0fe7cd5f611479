use crate::{blockyard, fixture};

// A number that no machine has, so that the test says the same with a driver and without.
const NOBODYS: &str = "cuda:999";

#[test]
fn a_device_that_is_not_there_is_one_error() {
    let file = fixture("synthetic/default-mix");
    let commands: [&[&str]; 3] = [
        &["run", "--device", NOBODYS, &file],
        &["verify", "--device", NOBODYS, &file, &file],
        &["play", "--device", NOBODYS, "terms"],
    ];
    for command in commands {
        let called = blockyard(command.iter().copied());
        assert_eq!(called.status, 2, "{called:?}");
        assert_eq!((called.out.as_str(), called.err.lines().count()), ("", 1), "{called:?}");
        assert!(called.err.starts_with("error: cuda:999: "), "{called:?}");
        let reasons = ["there is no CUDA driver here", "finds no device", "there is no CUDA device 999"];
        assert!(reasons.iter().any(|reason| called.err.contains(reason)), "{called:?}");
    }
}

#[test]
fn what_is_no_device_is_reported() {
    let called = blockyard(["play", "--device", "gpu", "terms"]);
    assert_eq!(called.status, 2);
    assert!(called.err.contains("expected `virtual`, or `cuda:` and a device number"), "{}", called.err);
}
