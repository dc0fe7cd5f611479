//! The files of a class on the page for teachers: each has a row, whatever it holds.

use anyhow::{Result, ensure};
use blockyard_e2e::Page;
use serde_json::{Value, json};

use crate::id;
use crate::teaching::{LAPTOP, at};

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
    return `${location.href.split('#')[0]}#lesson=pools&card=7&solution=1.${text}`;";

const POOLS: &str = "pool first\nenter first\nx1 = alloc 8 MiB\ny1 = alloc 8 MiB\nleave first\nfree x1, y1\n# edit from here\nLINES# edit to here\n";
const SOLVED: &str = "enter first\nx2 = alloc 8 MiB\ny2 = alloc 8 MiB\nleave first\n";
const UNSOLVED: &str = "pool second\nenter second\nx2 = alloc 8 MiB\ny2 = alloc 8 MiB\nleave second\n";
const TENSOR: &str = "import torch\n\n# edit from here\nLINES# edit to here\nprint(batch.shape, batch.dtype, torch.cuda.memory_allocated(), \"bytes\")\nassert batch.shape == (256, 3, 224, 224), \"the shape stays\"\n";

fn wait_graded(page: &Page, words: &str) -> Result<()> {
    // The interpreter is fetched and compiled for the first program.
    for _ in 0..8 {
        if page.wait_text(&id("grade-progress"), words).is_ok() {
            return Ok(());
        }
    }
    page.wait_text(&id("grade-progress"), words)
}

fn rows(page: &Page) -> Result<Vec<Vec<String>>> {
    Ok(serde_json::from_value(page.execute(ROWS, &[])?)?)
}

fn row<'a>(rows: &'a [Vec<String>], name: &str) -> Result<&'a [String]> {
    let found = rows.iter().find(|row| row.first().is_some_and(|file| file == name));
    found.map(Vec::as_slice).ok_or_else(|| anyhow::anyhow!("no row of {name} in {rows:?}"))
}

#[test]
fn the_files_of_a_class_are_graded_at_once_and_each_has_a_row() -> Result<()> {
    at("/#teachers", LAPTOP, |page| {
        page.wait_for(&id("grade-files"))?;
        let program = |dtype: &str| {
            TENSOR
                .replace("LINES", &format!("batch = torch.randn(256, 3, 224, 224{dtype}, device=\"cuda\")\n"))
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
        files.extend(
            (0..52).map(|number| (format!("student-{number}.workload"), POOLS.replace("LINES", SOLVED))),
        );
        let link = page.execute_async(LINK, &[json!(SOLVED)])?;
        files.push(("link.txt".to_owned(), format!("{}\n", link.as_str().unwrap_or_default())));
        page.execute(HAND_IN, &[json!(files)])?;
        wait_graded(page, "61 of 61 files graded, 55 passed, 3 could not be graded.")?;
        let table = rows(page)?;
        ensure!(table.len() == 61, "{} rows", table.len());
        let of = |name: &str| row(&table, name);
        ensure!(
            of("solved.workload")?[1..] == ["pools", "passed", "2 of 2", "", ""],
            "{:?}",
            of("solved.workload")
        );
        ensure!(
            of("early.workload")?[1..]
                == [
                    "pools",
                    "not yet",
                    "1 of 2",
                    "the number of segments is at most 1",
                    "the number of segments is 2, 1 more than 1."
                ],
            "{:?}",
            of("early.workload")
        );
        ensure!(of("half.py")?[1..3] == ["tensor", "passed"], "{:?}", of("half.py"));
        ensure!(
            of("whole.py")?[1..3] == ["tensor", "not yet"] && of("whole.py")?[5].contains("148 MiB"),
            "{:?}",
            of("whole.py")
        );
        ensure!(
            of("broken.py")?[2] == "not yet" && of("broken.py")?[5].contains("SyntaxError"),
            "{:?}",
            of("broken.py")
        );
        ensure!(
            of("meyer_pools.txt")?[1..3] == ["pools", "not graded"]
                && of("meyer_pools.txt")?[5].contains("line 6 belongs to the task"),
            "{:?}",
            of("meyer_pools.txt")
        );
        ensure!(
            of("essay.txt")?[2] == "not graded" && of("essay.txt")?[5].contains("of no exercise here"),
            "{:?}",
            of("essay.txt")
        );
        ensure!(of("empty.py")?[5] == "empty", "{:?}", of("empty.py"));
        ensure!(of("link.txt")?[1..3] == ["pools", "passed"], "{:?}", of("link.txt"));
        page.check_accessible()?;
        // Bytes that are no text, dropped on the page: the rows before stay.
        page.execute(
            DROP,
            &[json!([
                ["photo.py", [255, 254, 0, 1]],
                ["again.workload", POOLS.replace("LINES", SOLVED).bytes().collect::<Vec<u8>>()]
            ])],
        )?;
        wait_graded(page, "63 of 63 files graded, 56 passed, 4 could not be graded.")?;
        ensure!(row(&rows(page)?, "photo.py")?[5] == "not UTF-8", "bytes");
        // Sorted by a press, from its end by another, in the order of the files by a third.
        let sort =
            |column: usize| page.click(&format!("[data-testid=grades] [data-column='{}']", column - 1));
        sort(3)?;
        page.wait_for("[data-testid=grades] th:nth-child(3)[aria-sort=ascending]")?;
        ensure!(rows(page)?[0][2] == "not graded", "sorted by the result");
        sort(3)?;
        page.wait_for("[data-testid=grades] th:nth-child(3)[aria-sort=descending]")?;
        ensure!(rows(page)?[0][2] == "passed", "sorted from the end");
        sort(3)?;
        page.wait_for("[data-testid=grades] th:nth-child(3)[aria-sort=none]")?;
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
        page.execute("location.hash = '#teachers'", &[])?;
        page.wait_text(&id("grade-progress"), "63 of 63 files graded")?;
        page.execute("URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return '#teachers'; }", &[])?;
        page.click(&id("grades-csv"))?;
        page.wait_until("window.saved?.includes('\"File\",\"Lesson\",\"Result\",\"Goals met\",\"Goals missed\",\"Message\"')")?;
        let saved: Value = page.execute("return window.saved.trim().split('\\r\\n').length", &[])?;
        ensure!(saved == json!(64), "{saved} lines");
        page.click(&id("clear-grades"))?;
        page.wait_until("document.querySelectorAll('[data-testid=grades] tbody tr').length === 0").map(drop)
    })
}
