//! The files of a class on the page for teachers: each has a row, whatever it holds.

use anyhow::{Result, ensure};
use blockyard_e2e::Page;
use serde_json::{Value, json};

use crate::teaching::{LAPTOP, at};
use crate::{id, wait_long};

/// Hands files in through the input, all at once: names and texts.
const HAND_IN: &str = "const input = document.querySelector('[data-testid=class-files]');
    const files = new DataTransfer();
    for (const [name, text] of arguments[0]) files.items.add(new File([text], name));
    input.files = files.files;
    input.dispatchEvent(new Event('change', { bubbles: true }));";

const DROP: &str = "const data = new DataTransfer();
    for (const [name, bytes] of arguments[0]) data.items.add(new File([new Uint8Array(bytes)], name));
    document.querySelector('.teachers').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));";

/// The cells of the table, by row.
const ROWS: &str = "return [...document.querySelectorAll('[data-testid=grades] tbody tr')]
    .map((row) => [...row.children].map((cell) => cell.textContent))";

/// The link to a solution as a student copies it: the lines are packed.
const LINK: &str = "const packed = new Blob([arguments[0]]).stream().pipeThrough(new CompressionStream('deflate-raw'));
    const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
    const text = btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
    return `${location.href.split('#')[0]}#lesson=pools&card=8&solution=1.${text}`;";

const POOLS: &str = "pool first\nenter first\nx1 = alloc 8 MiB\ny1 = alloc 8 MiB\nleave first\nfree x1, y1\n# edit from here\nLINES# edit to here\n";
const SOLVED: &str = "enter first\nx2 = alloc 8 MiB\ny2 = alloc 8 MiB\nleave first\n";
const UNSOLVED: &str = "pool second\nenter second\nx2 = alloc 8 MiB\ny2 = alloc 8 MiB\nleave second\n";
const TENSOR: &str = "import torch\n\n# edit from here\nLINES# edit to here\nprint(batch.shape, batch.dtype, torch.cuda.memory_allocated(), \"bytes\")\nassert batch.shape == (256, 3, 224, 224), \"the shape stays\"\nassert batch.is_cuda and batch.is_floating_point(), \"the images are fractions, on the GPU\"\n";

fn rows(page: &Page) -> Result<Vec<Vec<String>>> {
    Ok(serde_json::from_value(page.execute(ROWS, &[])?)?)
}

fn row<'a>(rows: &'a [Vec<String>], name: &str) -> Result<&'a [String]> {
    let found = rows.iter().find(|row| row.first().is_some_and(|file| file == name));
    found.map(Vec::as_slice).ok_or_else(|| anyhow::anyhow!("no row of {name} in {rows:?}"))
}

/// The files that a class hands in, each with its text.
fn files_of_a_class() -> Vec<(String, String)> {
    let program = |dtype: &str| {
        TENSOR.replace("LINES", &format!("batch = torch.randn(256, 3, 224, 224{dtype}, device=\"cuda\")\n"))
    };
    let locked = POOLS.replace("LINES", SOLVED).replace("free x1, y1", "free x1");
    let mut files = vec![
        ("solved.workload".to_owned(), POOLS.replace("LINES", SOLVED)),
        ("early.workload".to_owned(), POOLS.replace("LINES", UNSOLVED)),
        ("meyer_pools.txt".to_owned(), locked),
        ("half.py".to_owned(), program(", dtype=torch.float16")),
        ("whole.py".to_owned(), program("")),
        ("broken.py".to_owned(), TENSOR.replace("LINES", "batch = torch.randn(256\n")),
        ("essay.txt".to_owned(), "I think that it is 20 MiB.\n".to_owned()),
        ("empty.py".to_owned(), String::new()),
    ];
    files
        .extend((0..52).map(|number| (format!("student-{number}.workload"), POOLS.replace("LINES", SOLVED))));
    files
}

/// The same solution as a link, a link in a shortcut and in a mail, and the reader's own lines alone.
fn solved_otherwise(page: &Page) -> Result<Vec<(String, String)>> {
    let link = page.execute_async(LINK, &[json!(SOLVED)])?;
    let link = link.as_str().unwrap_or_default();
    Ok(vec![
        ("link.txt".to_owned(), format!("{link}\n")),
        ("anna.url".to_owned(), format!("[InternetShortcut]\r\nURL={link}\r\n")),
        ("bo.eml".to_owned(), format!("Subject: pools\n\nMy answer is {link}.\n\nBo")),
        ("carl.txt".to_owned(), SOLVED.to_owned()),
    ])
}

/// The results of a class: what each row says after the file's name.
fn each_file_has_its_result(table: &[Vec<String>]) -> Result<()> {
    let of = |name: &str| row(table, name);
    let begins = [
        ("solved.workload", &["solved", "pools", "passed", "2 of 2", "", ""][..]),
        (
            "early.workload",
            &[
                "early",
                "pools",
                "not yet",
                "1 of 2",
                "the number of segments is at most 1",
                "the number of segments is 2, 1 more than 1.",
            ],
        ),
        ("half.py", &["half", "tensor", "passed"]),
        ("whole.py", &["whole", "tensor", "not yet"]),
        ("meyer_pools.txt", &["meyer", "pools", "not graded"]),
        ("anna.url", &["anna", "pools", "passed"]),
        ("bo.eml", &["bo", "pools", "passed"]),
        ("carl.txt", &["carl", "pools", "passed"]),
        ("link.txt", &["link", "pools", "passed"]),
    ];
    for (name, expected) in begins {
        ensure!(of(name)?[1..=expected.len()] == *expected, "{:?}", of(name));
    }
    for (name, result) in [("broken.py", "not yet"), ("essay.txt", "not graded")] {
        ensure!(of(name)?[3] == result, "{:?}", of(name));
    }
    let messages = [
        ("whole.py", "148 MiB"),
        ("broken.py", "SyntaxError"),
        ("meyer_pools.txt", "line 6 belongs to the task"),
        ("essay.txt", "of no exercise here"),
    ];
    for (name, message) in messages {
        ensure!(of(name)?[6].contains(message), "{:?}", of(name));
    }
    for (name, message) in [("empty.py", "empty"), ("link.txt", "same lines as solved")] {
        ensure!(of(name)?[6].trim() == message, "{:?}", of(name));
    }
    Ok(())
}

#[test]
fn the_files_of_a_class_are_graded_at_once_and_each_has_a_row() -> Result<()> {
    at("/#teachers=hand-out", LAPTOP, |page| {
        page.wait_for(&id("grade-files"))?;
        let mut files = files_of_a_class();
        files.extend(solved_otherwise(page)?);
        page.execute(HAND_IN, &[json!(files)])?;
        wait_long(page, &id("grade-progress"), "64 of 64 files graded, 58 passed, 3 could not be graded.")?;
        let table = rows(page)?;
        ensure!(table.len() == 64, "{} rows", table.len());
        each_file_has_its_result(&table)?;
        // A row opens the student's lines, without those of the task.
        page.click("[data-testid=grades] [data-file='1']")?;
        page.wait_text("[data-testid=grades] pre", "enter second")?;
        ensure!(!page.text("[data-testid=grades] pre")?.contains("pool first"), "the lines of the task");
        page.check_accessible()?;
        page.click("[data-testid=grades] [data-file='1'][aria-expanded=true]")?;
        page.wait_until("!document.querySelector('[data-testid=grades] pre')")?;
        // Bytes that are not a text are dropped on the page, and the rows before stay.
        page.execute(
            DROP,
            &[json!([
                ["photo.py", [255, 254, 0, 1]],
                ["again.workload", POOLS.replace("LINES", SOLVED).bytes().collect::<Vec<u8>>()]
            ])],
        )?;
        wait_long(page, &id("grade-progress"), "66 of 66 files graded, 59 passed, 4 could not be graded.")?;
        ensure!(row(&rows(page)?, "photo.py")?[6] == "not UTF-8", "bytes");
        // One press sorts the table, a second reverses the order, and a third restores the order of the
        // files.
        let sort =
            |column: usize| page.click(&format!("[data-testid=grades] [data-column='{}']", column - 1));
        sort(4)?;
        page.wait_for("[data-testid=grades] th:nth-child(4)[aria-sort=ascending]")?;
        ensure!(rows(page)?[0][3] == "not graded", "sorted by the result");
        sort(4)?;
        page.wait_for("[data-testid=grades] th:nth-child(4)[aria-sort=descending]")?;
        ensure!(rows(page)?[0][3] == "passed", "sorted from the end");
        sort(4)?;
        page.wait_for("[data-testid=grades] th:nth-child(4)[aria-sort=none]")?;
        ensure!(rows(page)?[0][0] == "solved.workload", "the order of the files");
        // On a phone the table scrolls in its frame, and the page does not.
        let screen = |width: u32| {
            let phone =
                json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600 });
            page.devtools("Emulation.setDeviceMetricsOverride", &phone)
        };
        screen(390)?;
        page.wait_until("document.documentElement.scrollWidth <= 390")?;
        screen(1366)?;
        // The table is kept while the teacher looks elsewhere, and is saved with the columns of the command.
        page.execute("location.hash = '#lessons'", &[])?;
        page.wait_for(&id("lessons"))?;
        page.execute("location.hash = '#teachers=hand-out'", &[])?;
        page.wait_text(&id("grade-progress"), "66 of 66 files graded")?;
        page.execute("URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return '#teachers=hand-out'; }", &[])?;
        page.click(&id("grades-csv"))?;
        page.wait_until("window.saved?.includes('\"File\",\"Name\",\"Lesson\",\"Result\",\"Goals met\",\"Goals missed\",\"Message\"')")?;
        let saved: Value = page.execute("return window.saved.trim().split('\\r\\n').length", &[])?;
        ensure!(saved == json!(67), "{saved} lines");
        page.click(&id("clear-grades"))?;
        page.wait_until("document.querySelectorAll('[data-testid=grades] tbody tr').length === 0").map(drop)
    })
}

/// An archive as a learning platform packs it: a folder of each student's.
const ZIP: &str = "const bytes = [], directory = [];
    const u16 = (n) => [n & 255, n >> 8], u32 = (n) => [...u16(n & 65535), ...u16(n >>> 16)];
    const files = arguments[0];
    const crc = (raw) => {
        let sum = -1;
        for (const byte of raw) {
            sum ^= byte;
            for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
        }
        return ~sum >>> 0;
    };
    for (const [name, text] of files) {
        const raw = [...new TextEncoder().encode(text)], path = [...new TextEncoder().encode(name)];
        const packed = [...new Uint8Array(await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream('deflate-raw'))).arrayBuffer())];
        const rest = [...u16(8), 0, 0, 0, 0, ...u32(crc(raw)), ...u32(packed.length), ...u32(raw.length), ...u16(path.length), 0, 0];
        directory.push(80, 75, 1, 2, 20, 0, 20, 0, 0, 0, ...rest, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...u32(bytes.length), ...path);
        bytes.push(80, 75, 3, 4, 20, 0, 0, 0, ...rest, ...path, ...packed);
    }
    const end = [80, 75, 5, 6, 0, 0, 0, 0, ...u16(files.length), ...u16(files.length), ...u32(directory.length), ...u32(bytes.length), 0, 0];
    return [...bytes, ...directory, ...end];";

const OWN: &str = "---\nid: own-lesson\ntitle: My own lesson\nsummary: One card.\ncapacity: 64 MiB\n---\n\n## A card\n\n```exercise\ngoal: peak reserved at most 20 MiB\ngoal: same requests\nhint: Free a.\n```\n\n```start\na = alloc 12 MiB\n# edit from here\n# edit to here\nb = alloc 12 MiB\n```\n\n```solution\nfree a\n```\n";

#[test]
fn archives_notebooks_and_a_lesson_of_the_teachers_own_are_graded_and_an_endless_loop_holds_nobody_up()
-> Result<()> {
    at("/#teachers=hand-out", LAPTOP, |page| {
        page.wait_for(&id("grade-files"))?;
        let tensor = |lines: &str| TENSOR.replace("LINES", lines);
        let half = "batch = torch.randn(256, 3, 224, 224, dtype=torch.float16, device=\"cuda\")\n";
        let cells: Vec<Value> = [json!({ "cell_type": "markdown", "source": ["# Mine"] })]
            .into_iter()
            .chain([json!({ "cell_type": "code", "source": ["%matplotlib inline\n", tensor(half)] })])
            .collect();
        let own = |line: &str| {
            format!("a = alloc 12 MiB\n# edit from here\n{line}# edit to here\nb = alloc 12 MiB\n")
        };
        let zip = page.execute_async(
            ZIP,
            &[json!([
                ["week/Anna Meyer_17_assign/own.workload", own("free a\n")],
                ["week/Bo Li_18_assign/loop.py", tensor("while True:\n    pass\n")],
                ["week/Cy_19_assign/mine.ipynb", json!({ "cells": cells }).to_string()],
            ])],
        )?;
        page.execute(
            DROP,
            &[json!([
                ["week.zip", zip],
                ["own.md", OWN.bytes().collect::<Vec<u8>>()],
                ["dora-own.workload", own("").bytes().collect::<Vec<u8>>()],
                ["broken.zip", [80, 75, 3, 4]],
            ])],
        )?;
        page.wait_text(&id("class-lessons"), "Graded too, by the file that you gave: My own lesson.")?;
        wait_long(page, &id("grade-progress"), "5 of 5 files graded, 2 passed, 2 could not be graded.")?;
        let table = rows(page)?;
        let of = |name: &str| row(&table, name);
        let anna = of("Anna Meyer_17_assign/own.workload")?;
        ensure!(anna[1..4] == ["Anna Meyer", "own-lesson", "passed"], "{anna:?}");
        let bo = of("Bo Li_18_assign/loop.py")?;
        ensure!(
            bo[1..4] == ["Bo Li", "tensor", "not graded"] && bo[6].contains("stopped after 10 s"),
            "{bo:?}"
        );
        let cy = of("Cy_19_assign/mine.ipynb")?;
        ensure!(cy[1..4] == ["Cy", "tensor", "passed"], "{cy:?}");
        let dora = of("dora-own.workload")?;
        ensure!(dora[1..4] == ["dora", "own-lesson", "not yet"], "{dora:?}");
        ensure!(of("broken.zip")?[6].contains("no zip archive"), "{:?}", of("broken.zip"));
        page.check_accessible()
    })
}

/// A lesson as a teacher writes it in an editor of their own: its program has not run.
const IN_PYTHON: &str = "---\nid: by-hand\ntitle: By hand\nsummary: One card.\ncapacity: 64 MiB\n---\n\n## A card\n{reserved}.\n\n```python run\nimport torch\na = torch.empty(3 * 2**18, device=\"cuda\")\n```\n\n## Exercise\nText.\n\n```exercise\ngoal: most_allocated at most 2 MiB\nhint: Which `dtype`?\n```\n\n```python start\nimport torch\n\n# edit from here\na = torch.empty(3 * 2**18, device=\"cuda\")\n# edit to here\nassert a.is_cuda and a.numel() == 3 * 2**18\n```\n";

#[test]
fn a_lesson_of_python_that_has_not_run_is_run_for_its_grades_and_in_the_editor() -> Result<()> {
    at("/#teachers=hand-out", LAPTOP, |page| {
        page.wait_for(&id("grade-files"))?;
        let answer = |line: &str| {
            format!(
                "import torch\n\n# edit from here\n{line}\n# edit to here\nassert a.is_cuda and a.numel() == 3 * 2**18\n"
            )
        };
        let half = answer("a = torch.empty(3 * 2**18, dtype=torch.float16, device=\"cuda\")");
        let files = json!([
            ["by-hand.md", IN_PYTHON],
            ["anna.py", half],
            ["bo.py", answer("a = torch.empty(3 * 2**18, device=\"cuda\")")],
            // The assert of the task was changed.
            ["cy.py", half.replace("3 * 2**18\n", "3\n").replace("(3 * 2**18", "(3")],
            ["broken.md", IN_PYTHON.replace("id: by-hand", "id: broken").replace("import torch\na", "a")],
        ]);
        page.execute(HAND_IN, &[files])?;
        wait_long(page, &id("class-lessons"), "By hand")?;
        wait_long(page, &id("grade-progress"), "4 of 4 files graded, 1 passed, 2 could not be graded.")?;
        let table = rows(page)?;
        ensure!(row(&table, "anna.py")?[2..4] == ["by-hand", "passed"], "{table:?}");
        ensure!(row(&table, "bo.py")?[3] == "not yet", "{table:?}");
        ensure!(row(&table, "cy.py")?[3] == "not graded", "{table:?}");
        let broken = &row(&table, "broken.md")?[6];
        ensure!(broken.contains("ine 12: NameError: name 'torch' is not defined"), "{broken}");
        // Alone, the file is opened where its program runs.
        page.execute(DROP, &[json!([["by-hand.md", IN_PYTHON.bytes().collect::<Vec<u8>>()]])])?;
        wait_long(page, &id("lesson-verdict"), "It plays").map(drop)
    })
}
