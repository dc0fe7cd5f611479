// Each rectangle is an instance of a quad. Moments and addresses are whole numbers, so that nothing jitters however far the zoom goes:
// the shown part's corner is taken away before anything becomes a float.

struct View {
    // The step and the unit at the lower left corner, rounded down; then what was rounded off.
    corner: vec2<u32>,
    fraction: vec2<f32>,
    // Pixels a step and a unit.
    scale: vec2<f32>,
    // The picture in pixels.
    size: vec2<f32>,
    // Whether all but the chosen ones are pale.
    dims: u32,
    // How many pixels of the picture are as wide as one of the page; 0 leaves the dots of cached memory out.
    pixel_ratio: f32,
}

const OPEN_END: u32 = 0xffffffffu;
const PICKED: u32 = 256u;
const PLACES: u32 = 32u;
const RESERVED: u32 = 30u;
const GROUND: u32 = 31u;
// The dots of cached memory, as every figure has them: one in each corner of a tile, in pixels of the page.
const TILE: f32 = 6.0;
const DOTS: vec2<f32> = vec2<f32>(1.5, 4.5);
const DOT_RADIUS: f32 = 0.9;
// Rectangles of fewer pixels have no edge.
const DIVIDED: f32 = 5.0;

@group(0) @binding(0) var<uniform> view: View;
// The colors; behind them the same ones, pale.
@group(0) @binding(1) var<uniform> palette: array<vec4<f32>, 64>;

struct Corner {
    @builtin(position) position: vec4<f32>,
    // Pixels from the rectangle's lower left corner.
    @location(0) place: vec2<f32>,
    @location(1) @interpolate(flat) extent: vec2<f32>,
    @location(2) @interpolate(flat) color: u32,
}

fn distance_px(at: u32, corner: u32, fraction: f32, scale: f32, size: f32) -> f32 {
    if at == OPEN_END {
        return size + 16.0;
    }
    // Differences of unsigned numbers wrap around; as signed ones they are right up to 2^31.
    let whole = bitcast<i32>(at - corner);
    return clamp((f32(whole) - fraction) * scale, -16.0, size + 16.0);
}

fn round_px(px: f32) -> f32 {
    return floor(px + 0.5);
}

@vertex
fn corner(@builtin(vertex_index) vertex: u32, @location(0) rect: vec4<u32>, @location(1) color: u32) -> Corner {
    let left = round_px(distance_px(rect.x, view.corner.x, view.fraction.x, view.scale.x, view.size.x));
    let right = round_px(distance_px(rect.y, view.corner.x, view.fraction.x, view.scale.x, view.size.x));
    let bottom = distance_px(rect.z, view.corner.y, view.fraction.y, view.scale.y, view.size.y);
    var low = round_px(bottom);
    var high = round_px(distance_px(rect.w, view.corner.y, view.fraction.y, view.scale.y, view.size.y));
    if high <= low {
        // Lower than a pixel: the line of pixels in which it is.
        low = floor(bottom);
        high = low + 1.0;
    }
    let corner = vec2<f32>(f32(vertex & 1u), f32(vertex >> 1u));
    let extent = vec2<f32>(right - left, high - low);
    let at = vec2<f32>(left, low) + corner * extent;
    var made: Corner;
    made.position = vec4<f32>(at / view.size * 2.0 - 1.0, 0.0, 1.0);
    made.place = corner * extent;
    made.extent = extent;
    made.color = color;
    return made;
}

@fragment
fn paint(corner: Corner) -> @location(0) vec4<f32> {
    let place = corner.color % PLACES;
    let is_pale = view.dims == 1u && (corner.color & PICKED) == 0u && place != RESERVED;
    let color = palette[select(place, place + PLACES, is_pale)];
    if place == RESERVED && view.pixel_ratio > 0.0 {
        let at = corner.position.xy / view.pixel_ratio;
        let tile = at - floor(at / TILE) * TILE;
        let near = min(distance(tile, vec2<f32>(DOTS.x)), distance(tile, vec2<f32>(DOTS.y)));
        let cover = clamp((DOT_RADIUS - near) * view.pixel_ratio + 0.5, 0.0, 1.0);
        return mix(color, palette[RESERVED + PLACES], cover);
    }
    let is_lowest = corner.place.y < 1.0 && corner.extent.y >= DIVIDED;
    let is_first = corner.place.x < 1.0 && corner.extent.x >= DIVIDED;
    if place != RESERVED && (is_lowest || is_first) {
        return mix(color, palette[GROUND], 0.4);
    }
    return color;
}
