use std::path::Path;

use super::{blockyard, command, fixture, json};

/// The examples of a document: each command, and the lines that it must print.
fn examples(text: &str) -> Vec<(String, Vec<String>)> {
    let mut examples: Vec<(String, Vec<String>)> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        if let Some(called) = line.strip_prefix("    $ blockyard ") {
            examples.push((called.to_owned(), Vec::new()));
            is_inside = true;
        } else if let (true, Some(line)) = (is_inside, line.strip_prefix("    ")) {
            if let Some((_, lines)) = examples.last_mut() {
                lines.push(line.to_owned());
            }
        } else {
            is_inside = false;
        }
    }
    examples
}

#[test]
fn every_example_of_the_documents_prints_what_stands_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let [page, answers] = ["docs/questions.md", "docs/questions-examples.md"]
        .map(|path| examples(&std::fs::read_to_string(root.join(path)).unwrap()));
    assert_eq!((page.len(), answers.len()), (1, 10));
    for (called, expected) in page.into_iter().chain(answers) {
        let mut parts = called.split('\'');
        let mut arguments: Vec<String> = Vec::new();
        while let Some(plain) = parts.next() {
            arguments.extend(plain.split_whitespace().map(str::to_owned));
            arguments.extend(parts.next().map(str::to_owned));
        }
        let output = command().args(&arguments).current_dir(&root).output().unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        let found: Vec<&str> = found.lines().map(str::trim_end).collect();
        assert_eq!(found, expected, "blockyard {called}");
    }
}

#[test]
fn the_terms_of_a_difference_add_up_in_json_too() {
    let (before, after) =
        (fixture("programs/gnn_random"), fixture("programs/gnn_random.max_split_size_mb_128"));
    let called = blockyard(["diff", before.as_str(), after.as_str(), "--json"]);
    assert_eq!(called.status, 1, "{}", called.err);
    let answer = json(called.out.trim_end());
    for peak in ["allocated", "reserved"] {
        let terms = answer[peak]["terms"].as_array().unwrap().iter();
        let sum: i64 = terms.map(|term| term["change"].as_i64().unwrap()).sum();
        assert_eq!(answer[peak]["change"], sum);
    }
    assert_eq!(answer["reserved"]["after"], 19_706_937_344_u64);
    assert_eq!(blockyard(["diff", before.as_str(), before.as_str()]).status, 0);
}

#[test]
fn growth_has_an_exit_status_of_its_own() {
    let steady = fixture("programs/gpt2_varlen");
    assert_eq!(blockyard(["leaks", steady.as_str()]).status, 0);
    let growing = fixture("oom/loss_history_100").replace(".jsonl.gz", ".pickle.gz");
    let called = blockyard(["leaks", growing.as_str(), "--json"]);
    assert_eq!(called.status, 1);
    assert_eq!(json(called.out.trim_end())["steps"], "repetition");
}

#[test]
fn texts_that_are_no_snapshot_say_what_they_hold() {
    let message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 8.00 GiB \
        of which 497.19 MiB is free. Of the allocated memory 7.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch \
        but unallocated.";
    let pasted = blockyard(["verdict", &super::file("pasted.txt", message)]);
    assert_eq!(pasted.status, 2, "there are no requests");
    for words in [
        "pasted.txt: GPU 0 ran out of memory: PyTorch tried to allocate 512 MiB, and 497.19 MiB of 8 GiB were free\n",
        "  cached and free memory together (497.19 MiB) are 14.81 MiB less than the request",
        "  the text does not say which lines hold the memory",
    ] {
        assert!(pasted.out.contains(words), "{words}\n{}", pasted.out);
    }
    let events = "[[-1, 1, 4194304, 0], [5, 2, 2097152, 3], [7, 4, -2097152, 3]]";
    let timeline = blockyard(["bound", &super::file("memory.raw.json", events), "--json"]);
    let found: serde_json::Value = serde_json::from_str(&timeline.out).unwrap();
    assert_eq!((timeline.status, &found["lower_bound"]), (0, &serde_json::json!(6_291_456)), "{found}");
}
