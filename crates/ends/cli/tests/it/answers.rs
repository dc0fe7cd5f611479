use std::path::Path;

use expect_test::expect_file;

use super::command;

/// `UPDATE_EXPECT=1` writes the answers in `tests/fixtures/answers` again.
#[test]
fn the_command_prints_the_recorded_answers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let folder = root.join("tests/fixtures/answers");
    let commands = std::fs::read_to_string(folder.join("commands.txt")).unwrap();
    let mut count = 0;
    for line in commands.lines() {
        let (name, arguments) = line.split_once(": ").unwrap();
        let output = command().args(arguments.split(' ')).current_dir(&root).output().unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        expect_file![folder.join(format!("{name}.jsonl"))].assert_eq(&found);
        count += 1;
    }
    assert_eq!(count, 27);
}
