//! How long a frame takes: `frames [RECTANGLES] [FRAMES]` pans and zooms over rectangles of which each is
//! some pixels large, and prints the times as JSON.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::print_stdout, reason = "the answer goes to who started it")]
#![allow(clippy::cast_precision_loss, reason = "times and counts are small")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the place in a short list")]

mod offscreen;

use std::time::Instant;

use blockyard_figure::RECT_UNIT;
use blockyard_render::RectView;
use offscreen::OffscreenPicture;

/// A large screen.
const SIZE: (u32, u32) = (3840, 2160);

fn main() -> Result<(), String> {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u32>().unwrap_or(0));
    let count = words.next().unwrap_or(1_000_000);
    let frames = words.next().unwrap_or(600).max(1);
    let colors: Vec<[u8; 4]> = (0..64_u8).map(|index| [index * 4, 255 - index * 3, index, 255]).collect();
    let mut offscreen = OffscreenPicture::open(SIZE.0, SIZE.1, &colors).ok_or("there is no adapter")?;
    // A grid of rectangles that fills the figure: each rectangle is visible.
    let side = count.isqrt().max(1);
    let rects: Vec<u32> = (0..count)
        .flat_map(|rect| {
            let (x, y) = (rect % side, rect / side);
            [x * 10, x * 10 + 9, y * 8, y * 8 + 7]
        })
        .collect();
    let of_rect: Vec<u32> = (0..count).map(|rect| rect % 29).collect();
    let begun = Instant::now();
    offscreen.set_rects(&rects, &of_rect);
    let upload_ms = begun.elapsed().as_secs_f64() * 1e3;
    let (steps, bytes) = (f64::from(side) * 10.0, f64::from(side) * 8.0 * RECT_UNIT as f64);
    let mut times: Vec<f64> = (0..frames)
        .map(|frame| {
            // The view zooms from the whole figure to a tenth, and moves to the right.
            let at = f64::from(frame) / f64::from(frames);
            let span = 1.0 - 0.9 * at;
            let from = (1.0 - span) * at;
            let view = RectView {
                first_step: steps * from,
                last_step: steps * (from + span),
                low: bytes * from,
                high: bytes * (from + span),
                width_px: SIZE.0,
                height_px: SIZE.1,
                is_dimmed: false,
                pixel_ratio: 1.0,
            };
            let begun = Instant::now();
            offscreen.show(&view, count);
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    println!(
        "{{\"adapter\": \"{}\", \"rectangles\": {count}, \"pixels\": [{}, {}], \"frames\": {frames}, \"upload_ms\": {upload_ms:.2}, \
         \"median_ms\": {:.3}, \"p95_ms\": {:.3}, \"most_ms\": {:.3}}}",
        offscreen.adapter,
        SIZE.0,
        SIZE.1,
        at(0.5),
        at(0.95),
        times.last().copied().unwrap_or_default()
    );
    Ok(())
}
