//! Allocations at their addresses, drawn by the GPU: the same picture as the page's own, which takes over
//! where the GPU fails.

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window, drive_at};
use serde_json::{Value, json};

use crate::{choose, fixture, id};

/// Any adapter draws, a software one too.
const ADDRESS: &str = "/?painter=any#workbench";

/// The canvas that the GPU draws on.
const PAINTED: &str = "canvas.painted";

/// Whether the GPU's picture is shown.
const IS_PAINTED: &str = "document.querySelector('canvas.painted').hidden === false && performance.getEntriesByName('painted').length > 0";

fn open(page: &Page) -> Result<()> {
    let file = "resnet50_amp.pickle.gz";
    page.upload(&id("file"), &fixture("x").with_file_name("snapshots").join(file))?;
    page.wait_text(&id("document-title"), file)?;
    page.click(&id("by-address"))?;
    page.wait_text(&id("too-small"), "oo small to draw")
}

/// The colors at points of the figure's plot, as the canvas with this selector shows them: for each point its
/// color and the colors of the four points beside it.
fn colors(page: &Page, canvas: &str) -> Result<Vec<Value>> {
    let script = "
        const canvas = document.querySelector(arguments[0]);
        const plot = canvas.classList.contains('painted') ? canvas.style : arguments[1];
        const [left, top, width, height] =
            ['left', 'top', 'width', 'height'].map((name) => Math.round(parseFloat(plot[name])));
        const copy = new OffscreenCanvas(width, height).getContext('2d');
        const at = canvas.classList.contains('painted') ? [0, 0] : [-left, -top];
        copy.drawImage(canvas, ...at);
        const { data } = copy.getImageData(0, 0, width, height);
        const found = [];
        for (let y = 3; y < height; y += 7)
            for (let x = 3; x < width; x += 7)
                found.push([[0, 0], [0, -1], [0, 1], [-1, 0], [1, 0]].map(([right, down]) => {
                    const at = 4 * ((y + down) * width + x + right);
                    return [...data.slice(at, at + 4)].join();
                }));
        return found;";
    let plot = "
        const { left, top, width, height } = document.querySelector('canvas.painted').style;
        return { left, top, width, height };";
    let plot = page.execute(plot, &[])?;
    let found = page.execute(script, &[json!(canvas), plot])?;
    Ok(found.as_array().context("colors")?.clone())
}

/// Waits until the picture of the canvas stays the same for a while.
///
/// A canvas on which the GPU draws, or drew until now, has axes alone until the page has drawn its blocks: then
/// most of the canvas is opaque.
fn wait_for_same_picture(page: &Page, canvas: &str) -> Result<()> {
    page.wait_until(&format!(
        "(() => {{
            const canvas = document.querySelector(\"{canvas}\");
            if (!canvas.width || canvas.hidden) return false;
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
            copy.drawImage(canvas, 0, 0);
            const {{ data }} = copy.getImageData(0, 0, canvas.width, canvas.height);
            const words = new Uint32Array(data.buffer);
            const sum = words.reduce((sum, word) => (sum * 31 + word) | 0, 0);
            const [before, since] = window.settling ?? [];
            if (before !== sum) window.settling = [sum, performance.now()];
            const isDrawn = canvas.dataset.testid !== 'lifetimes' || words.filter((word) => word >>> 24 === 255).length > words.length / 2;
            return isDrawn && before === sum && performance.now() - since > 500 && new Set(words).size > 8;
        }})()"
    ))?;
    Ok(())
}

/// Fails unless both pictures have the same color at more than this part of the points.
fn check_same(one: &[Value], other: &[Value], least: f64) -> Result<()> {
    ensure!(one.len() == other.len() && one.len() > 1000, "{} and {} points", one.len(), other.len());
    let distinct: std::collections::BTreeSet<String> =
        one.iter().map(|colors| colors[0].to_string()).collect();
    // At least cached memory, allocations without a stack, and three stacks have different colors.
    ensure!(distinct.len() > 4, "hardly anything is drawn: {distinct:?}");
    // The GPU rounds the mean of two colors to the nearest number, the page's own picture cuts it off: that
    // is the same color.
    let is_color = |one: &Value, other: &Value| {
        let numbers = |color: &Value| -> Vec<i32> {
            color.as_str().unwrap_or_default().split(',').filter_map(|number| number.parse().ok()).collect()
        };
        let (one, other) = (numbers(one), numbers(other));
        one.len() == 4 && one.iter().zip(&other).all(|(one, other)| one.abs_diff(*other) <= 1)
    };
    // Edges of blocks and lines between them may lie a pixel apart, so that a row of points may lie on such a
    // line in one picture alone: the color of each has to be at the point of the other or beside it.
    let is_near = |one: &Value, other: &Value| {
        other.as_array().is_some_and(|colors| colors.iter().any(|color| is_color(&one[0], color)))
    };
    let is_same = |one: &Value, other: &Value| is_near(one, other) && is_near(other, one);
    // The page's own picture has a white line between neighbors where the GPU's has the mean of white and
    // their color, which is a known difference: points on such a line are not compared, and there may be few
    // of them, so that no block is missing in one picture.
    let is_white = |colors: &Value| is_color(&colors[0], &json!("255,255,255,255"));
    let pairs = one.iter().zip(other);
    let pairs: Vec<_> = pairs.filter(|(one, other)| is_white(one) == is_white(other)).collect();
    ensure!(
        pairs.len() * 100 > one.len() * 91,
        "{} of {} points lie on lines",
        one.len() - pairs.len(),
        one.len()
    );
    let (same, all) = (pairs.iter().filter(|(one, other)| is_same(one, other)).count(), pairs.len());
    // The pairs of colors that differ most often, so that a failure names them.
    let mut differing = std::collections::BTreeMap::<(String, String), usize>::new();
    for (one, other) in pairs.iter().filter(|(one, other)| !is_same(one, other)) {
        *differing.entry((one[0].to_string(), other[0].to_string())).or_default() += 1;
    }
    let mut differing: Vec<_> = differing.into_iter().collect();
    differing.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let part = f64::from(u32::try_from(same)?) / f64::from(u32::try_from(all)?);
    differing.truncate(6);
    ensure!(part > least, "{part} of the points have the same color; most often different: {differing:?}");
    Ok(())
}

#[test]
fn the_gpu_draws_the_page_s_picture_and_the_page_goes_on_where_it_fails() -> Result<()> {
    drive_at(ADDRESS, Window::default(), GpuChoice::SoftwareScreen, |page| {
        open(page)?;
        page.wait_until(IS_PAINTED)?;
        // By category. By stack, where blocks of one category that lie on each other have many colors, 92
        // percent are the same near: the edges between such blocks differ by some pixels, and why is not
        // known.
        choose(page, "color-by", "category")?;
        wait_for_same_picture(page, PAINTED)?;
        let whole = colors(page, PAINTED)?;
        // Until a step is wider than a pixel: a column of the page's picture shows one moment.
        for _ in 0..8 {
            page.press("w")?;
        }
        page.wait_for(&id("fit"))?;
        wait_for_same_picture(page, PAINTED)?;
        let near = colors(page, PAINTED)?;
        ensure!(near != whole, "nothing was zoomed");
        page.devtools("Browser.crashGpuProcess", &json!({})).context("the GPU's process ends")?;
        page.wait_until("document.querySelector('canvas.painted').hidden")?;
        wait_for_same_picture(page, &id("lifetimes"))?;
        let near_after = colors(page, &id("lifetimes"))?;
        page.press("0")?;
        page.wait_gone(&id("fit"))?;
        wait_for_same_picture(page, &id("lifetimes"))?;
        let whole_after = colors(page, &id("lifetimes"))?;
        // 97 and 92 percent: lines between neighbors differ by a pixel, and from afar a column of the page's
        // picture shows its busiest moment, where the GPU's shows the one at its edge.
        check_same(&near, &near_after, 0.95).context("near")?;
        check_same(&whole, &whole_after, 0.88).context("from afar")
    })
}

#[test]
fn a_gpu_that_cannot_show_its_picture_leaves_the_figure_to_the_page() -> Result<()> {
    drive_at(ADDRESS, Window::default(), GpuChoice::Software, |page| {
        open(page)?;
        // Chromium's GPU process ends with the first picture of this adapter, and all canvases are empty
        // then.
        page.wait_until("performance.getEntriesByName('painted').length > 0")?;
        page.wait_until("document.querySelector('canvas.painted').hidden")?;
        wait_for_same_picture(page, &id("lifetimes"))?;
        page.click(&id("by-state"))?;
        wait_for_same_picture(page, &id("timeline"))?;
        Ok(())
    })
}

#[test]
fn a_software_adapter_is_left_to_the_page() -> Result<()> {
    drive_at("/#workbench", Window::default(), GpuChoice::Software, |page| {
        open(page)?;
        page.wait_until("document.querySelector('canvas.painted').hidden")?;
        let begun = "return performance.getEntriesByName('painted').length";
        ensure!(page.execute(begun, &[])? == json!(0), "the software adapter draws");
        Ok(())
    })
}
