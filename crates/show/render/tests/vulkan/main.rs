//! Rectangles drawn by the adapter that Vulkan finds, a software one where there is no GPU, and read back.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]
#![allow(clippy::print_stdout, reason = "which adapter draws, or that a test skips")]

mod offscreen;

use blockyard_figure::{PICKED_BIT, Pattern, RECT_OPEN_END, RECT_UNIT, RESERVED_COLOR};
use blockyard_render::RectView;

use offscreen::OffscreenPicture;

const SIDE: u32 = 32;

const NOTHING: [u8; 4] = [0; 4];
const RESERVED: [u8; 4] = [200, 200, 200, 255];
const CACHED: [u8; 4] = [0, 140, 100, 255];
const GROUND: [u8; 4] = [255; 4];
const FIRST: [u8; 4] = [255, 0, 0, 255];
const SECOND: [u8; 4] = [0, 0, 255, 255];
const PALE: [u8; 4] = [255, 200, 200, 255];

impl OffscreenPicture {
    fn set_colors(&mut self, colors: &[u32]) {
        self.renderer.set_colors(&self.queue, colors);
    }

    /// Draws a frame and returns its pixels, line by line from the top.
    fn draw(&self, view: &RectView, count: u32) -> Vec<[u8; 4]> {
        self.show(view, count);
        let size = self.texture.size();
        let line = (size.width * 4).next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::from(line) * u64::from(size.height),
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let layout =
            wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(line), rows_per_image: None };
        encoder.copy_texture_to_buffer(
            self.texture.as_image_copy(),
            wgpu::TexelCopyBufferInfo { buffer: &buffer, layout },
            size,
        );
        self.queue.submit([encoder.finish()]);
        buffer.slice(..).map_async(wgpu::MapMode::Read, |_| ());
        let _ = self.device.poll(wgpu::PollType::wait_indefinitely());
        let Ok(mapped) = buffer.slice(..).get_mapped_range() else { return Vec::new() };
        let bytes = mapped.to_vec();
        let lines =
            bytes.chunks(line as usize).map(|line| line.get(..size.width as usize * 4).unwrap_or_default());
        lines.flat_map(|line| line.as_chunks::<4>().0).copied().collect()
    }
}

fn opened() -> Option<OffscreenPicture> {
    let mut colors = vec![NOTHING; 64];
    colors[0] = FIRST;
    colors[1] = SECOND;
    colors[32] = PALE;
    colors[RESERVED_COLOR as usize] = RESERVED;
    colors[RESERVED_COLOR as usize + 32] = CACHED;
    colors[31] = GROUND;
    let Some(offscreen) = OffscreenPicture::open(SIDE, SIDE, &colors) else {
        assert!(std::env::var_os("REQUIRE_VULKAN_GPU").is_none(), "there is no adapter");
        println!("skipped: Vulkan finds no adapter");
        return None;
    };
    println!("drawn by {}", offscreen.adapter);
    Some(offscreen)
}

/// A view of so many steps and units from a corner, a pixel each.
fn view(step: f64, unit: f64, span: f64) -> RectView {
    let unit_bytes = f64::from(u32::try_from(RECT_UNIT).unwrap());
    RectView {
        first_step: step,
        last_step: step + span,
        low: unit * unit_bytes,
        high: (unit + span) * unit_bytes,
        width_px: SIDE,
        height_px: SIDE,
        is_dimmed: false,
        pixel_ratio: 0.0,
    }
}

#[test]
fn each_pixel_has_the_color_of_its_rectangle() {
    let Some(mut offscreen) = opened() else { return };
    let geometry = [[0, RECT_OPEN_END, 0, 16], [4, 14, 2, 10], [14, 20, 2, 4]].concat();
    offscreen.set_rects(&geometry, &[RESERVED_COLOR, 0, PICKED_BIT | 1]);
    let picture = offscreen.draw(&view(0.0, 0.0, 32.0), 3);
    // From the lower left corner.
    let at = |x: u32, y: u32| picture[((SIDE - 1 - y) * SIDE + x) as usize];
    assert_eq!(at(0, 0), RESERVED);
    assert_eq!(at(31, 15), RESERVED);
    assert_eq!(at(0, 16), NOTHING);
    assert_eq!(at(5, 3), FIRST);
    assert_eq!(at(13, 9), FIRST);
    assert_eq!(at(14, 10), RESERVED);
    // The first column and the lowest line are an edge, so that neighbors can be distinguished.
    assert_eq!(at(4, 5), [255, 102, 102, 255]);
    assert_eq!(at(8, 2), [255, 102, 102, 255]);
    // Two pixels high: only the beginning has one.
    assert_eq!(at(14, 2), [102, 102, 255, 255]);
    assert_eq!(at(15, 2), SECOND);
}

#[test]
fn cached_memory_has_the_dots_that_it_has_in_every_figure() {
    let Some(mut offscreen) = opened() else { return };
    offscreen.set_rects(&[0, RECT_OPEN_END, 0, 32], &[RESERVED_COLOR]);
    let picture = offscreen.draw(&RectView { pixel_ratio: 1.0, ..view(0.0, 0.0, 32.0) }, 1);
    let tile = Pattern::Dots.tile();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in the picture")]
    let at = |x: f32, y: f32| picture[(y as u32 * SIDE + x as u32) as usize];
    for row in 0_u8..5 {
        for column in 0_u8..5 {
            let (left, top) = (f32::from(column) * tile.size_px, f32::from(row) * tile.size_px);
            for [x, y, _] in tile.dots {
                assert_eq!(at(left + x, top + y), CACHED, "{column} {row}");
            }
            assert_eq!(at(left + 4.5, top + 1.5), RESERVED, "between the dots");
        }
    }
}

#[test]
fn what_is_not_chosen_is_pale() {
    let Some(mut offscreen) = opened() else { return };
    offscreen.set_rects(&[[0, 4, 0, 4], [4, 8, 0, 4]].concat(), &[0, PICKED_BIT | 1]);
    let dimmed = RectView { is_dimmed: true, ..view(0.0, 0.0, 32.0) };
    let picture = offscreen.draw(&dimmed, 2);
    let at = |x: u32, y: u32| picture[((SIDE - 1 - y) * SIDE + x) as usize];
    assert_eq!((at(1, 1), at(5, 1)), (PALE, SECOND));
    // Only a prefix is drawn.
    let picture = offscreen.draw(&dimmed, 1);
    assert_eq!(picture[((SIDE - 2) * SIDE + 5) as usize], NOTHING);
}

#[test]
fn places_far_from_zero_are_exact() {
    let Some(mut offscreen) = opened() else { return };
    // Steps and units at which a float of 32 bits is off by hundreds.
    let (step, unit) = (2_000_000_000, 4_000_000_000);
    offscreen.set_rects(&[step + 2, step + 3, unit + 1, unit + 2], &[0]);
    let picture = offscreen.draw(&view(f64::from(step), f64::from(unit), 8.0), 1);
    let found: Vec<(u32, u32)> = (0..SIDE * SIDE)
        .filter(|place| picture[*place as usize] != NOTHING)
        .map(|place| (place % SIDE, SIDE - 1 - place / SIDE))
        .collect();
    // Four pixels a step: 4 by 4 pixels from (8, 4) on.
    assert_eq!(found.len(), 16);
    assert!(found.iter().all(|(x, y)| (8..12).contains(x) && (4..8).contains(y)), "{found:?}");
}

#[test]
fn other_colors_need_no_other_geometry() {
    let Some(mut offscreen) = opened() else { return };
    offscreen.set_rects(&[0, 4, 0, 4], &[0]);
    offscreen.set_colors(&[1]);
    let picture = offscreen.draw(&view(0.0, 0.0, 32.0), 1);
    assert_eq!(picture[((SIDE - 2) * SIDE + 1) as usize], SECOND);
}
