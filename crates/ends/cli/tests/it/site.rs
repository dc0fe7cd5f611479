//! `blockyard site`: the folder that it writes. That it opens in a browser without a network is tested there
//! (`tests/e2e`).

use std::fs;
use std::path::Path;

use super::blockyard;
use super::export_html::Folder;

const LESSON: &str = "---
id: mine
title: My <own> lesson
summary: One tensor.
capacity: 1 GiB
minutes: 2
---

## A tensor
It asks for {size x}.

```workload
x = alloc 3 MiB
```
";

fn page() -> Folder {
    let page = Folder::with_page();
    for (name, text) in [
        ("index.html", "<html><head><title>page</title></head><body></body></html>"),
        ("offline.js", "// keeps the page"),
        // The service worker that is built with the page: the files that `site` adds are not in its list.
        ("service-worker.js", "// Written by `cargo xtask`."),
    ] {
        fs::write(page.path().join(name), text).unwrap();
    }
    page
}

#[test]
fn a_site_has_the_page_own_files_and_an_index_of_both() {
    let (page, work) = (page(), Folder::new());
    let (lesson, program) = (work.path().join("my lesson.md"), work.path().join("train.py"));
    let workload = work.path().join("mine.workload");
    fs::write(&workload, "a = alloc 3 MiB\n").unwrap();
    fs::write(&lesson, LESSON).unwrap();
    fs::write(&program, "import torch\n").unwrap();
    let out = work.path().join("out");
    let [out_text, lesson, program, workload] =
        [&out, &lesson, &program, &workload].map(|path| path.to_str().unwrap());
    let arguments =
        ["site", out_text, lesson, program, workload, "--title", "Memory & more", "--page", page.text()];
    let called = blockyard(arguments);
    assert_eq!(called.status, 0, "{}", called.err);
    assert!(called.out.contains("course.html is the index"), "{}", called.out);

    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let index = read("course.html");
    assert!(index.contains("<h1>Memory &amp; more</h1>"), "{index}");
    assert!(index.contains("href=\"./#open=my%20lesson.md\">My &lt;own&gt; lesson</a>"), "{index}");
    assert!(index.contains("One tensor. 2 min"), "{index}");
    assert!(index.find("open=my%20lesson.md") < index.find("open=train.py"), "the order is another one");
    for part in blockyard_lessons::PARTS {
        for lesson in part.lessons {
            assert!(index.contains(&format!("href=\"./#lesson={}\"", lesson.id)), "{}", lesson.id);
        }
    }
    assert_eq!(read("open/my lesson.md"), LESSON);
    // The file of a workload names its device; else the page would keep the device of the run that it showed
    // before.
    assert!(read("open/mine.workload").contains("capacity"), "{}", read("open/mine.workload"));
    let worker = read("service-worker.js");
    for file in [
        "./",
        "./course.html",
        "./index.html",
        "./offline.js",
        "./open/my%20lesson.md",
        "./blockyard-web_bg.wasm",
    ] {
        assert!(worker.contains(&format!("\"{file}\"")), "{file}: {worker}");
    }

    // Other contents have another version, and the command overwrites a folder that it wrote before.
    fs::write(Path::new(program), "import torch\nprint(1)\n").unwrap();
    assert_eq!(blockyard(arguments).status, 0);
    let version = |worker: &str| worker.lines().find(|line| line.contains("VERSION")).map(str::to_owned);
    assert!(version(&worker).is_some() && version(&read("service-worker.js")) != version(&worker));
    assert_eq!(blockyard(["site", out_text, "--page", page.text()]).status, 0);
    assert!(!out.join("open").exists(), "a file of before is left");
}

#[test]
fn what_the_page_could_not_open_is_refused_and_nothing_is_lost() {
    let (page, work) = (page(), Folder::new());
    let wrong = work.path().join("notes.md");
    fs::write(&wrong, "---\nid: x\n---\n").unwrap();
    let out = work.path().join("out");
    let site = |out: &Path, files: &[&Path]| {
        let files = files.iter().map(|path| path.to_str().unwrap());
        let named = ["site", out.to_str().unwrap()].into_iter().chain(files).chain(["--page", page.text()]);
        blockyard(named.collect::<Vec<_>>())
    };
    let called = site(&out, &[&wrong]);
    assert!(called.status == 2 && called.err.contains("notes.md"), "{}", called.err);
    assert!(!out.exists());
    let twice =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/snapshots/rank0.pickle.gz");
    let called = site(&out, &[&twice, &twice]);
    assert!(called.err.contains("two files have the name rank0.pickle.gz"), "{}", called.err);
    // A folder with other things in it stays as it is.
    let called = site(work.path(), &[]);
    assert!(called.status == 2 && called.err.contains("has files of another origin"), "{}", called.err);
    fs::write(work.path().join("service-worker.js"), "// somebody's own").unwrap();
    assert_eq!(site(work.path(), &[]).status, 2);
    assert!(wrong.exists());
}
