//! Draws a [`Scene`] on a canvas. Knows colors and pixels and nothing about memory.

use blockyard_figure::typeface::FONT_FAMILY;
use blockyard_figure::{
    Anchor, Dash, Fill, Mark, Pattern, Point, Rect, Role, Scene, Tile, Weight, text_width_px,
};
use wasm_bindgen::prelude::*;
use web_sys::{CanvasPattern, CanvasRenderingContext2d, HtmlCanvasElement};

use crate::browser;

/// The colors of the page's theme, and the patterns that were made of them.
///
/// They are valid until the theme or the pixel ratio changes; then they have to be read again.
#[derive(Debug)]
pub(crate) struct Paints {
    /// CSS colors, in the order of `Role::all`.
    colors: Vec<String>,
    patterns: Vec<(Fill, Option<CanvasPattern>)>,
    /// Device pixels per pixel of a figure.
    ratio: f64,
    /// Whether blocks have outlines in addition to colors: on paper, and if colors are forced.
    is_patterned: bool,
}

impl Paints {
    /// The colors that the page's style gives to every role now.
    pub(crate) fn read() -> Self {
        let style = browser::window().and_then(|window| {
            let root = window.document()?.document_element()?;
            window.get_computed_style(&root).ok()?
        });
        let color = |role: Role| {
            let value = style.as_ref().and_then(|style| style.get_property_value(role.css_variable()).ok());
            value
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
                .unwrap_or("gray".to_owned())
        };
        let colors = Role::all().map(color).collect();
        Self {
            colors,
            patterns: Vec::new(),
            ratio: browser::canvas_ratio(),
            is_patterned: browser::is_contrast_forced() || browser::is_printing(),
        }
    }

    /// The colors as [`Paints::read`] reads them, for a picture with `ratio` device pixels per pixel of the
    /// figure.
    pub(crate) fn read_for(ratio: f64) -> Self {
        Self { ratio, ..Self::read() }
    }

    /// Draws the scene as [`Paints::draw`] does, on the background color.
    pub(crate) fn draw_on_ground(&mut self, canvas: &HtmlCanvasElement, scene: &Scene) {
        let mut grounded = scene.clone();
        let whole = Rect::new(0.0, 0.0, scene.width_px, scene.height_px);
        let ground = Mark::Rect { rect: whole, fill: Fill::solid(Role::Background), outline: None };
        grounded.marks.insert(0, ground);
        self.draw(canvas, &grounded);
    }

    /// The color of the role as red, green and blue; gray if the style sheet writes the color as a word.
    pub(crate) fn rgb(&self, role: Role) -> [u8; 3] {
        let text = self.color(role).trim_start_matches('#');
        let part = |at: usize| text.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (part(0), part(2), part(4)) {
            (Some(red), Some(green), Some(blue)) => [red, green, blue],
            _ => [128; 3],
        }
    }

    fn color(&self, role: Role) -> &str {
        let known = match role.known() {
            // A gap in the color of the background separates neighbors as well as a line does, and draws less
            // attention.
            Role::SplitEdge if !self.is_patterned => Role::Background,
            other => other,
        };
        let place = Role::all().position(|role| role == known);
        place.and_then(|place| self.colors.get(place)).map_or("gray", String::as_str)
    }

    fn pattern(&mut self, fill: Fill) -> Option<&CanvasPattern> {
        let place = self.patterns.iter().position(|(made, _)| *made == fill).unwrap_or_else(|| {
            let mut tile = fill.pattern.tile();
            // A screen has more colors than paper: dots lie on a stronger tint.
            if fill.pattern == Pattern::Dots && !self.is_patterned {
                tile.tint = Pattern::Tint.tile().tint;
            }
            let opacity = if self.is_patterned { 1.0 } else { SCREEN_DOTS };
            let pattern = make_pattern(self.color(fill.role), tile, self.ratio, opacity);
            self.patterns.push((fill, pattern));
            self.patterns.len() - 1
        });
        self.patterns.get(place)?.1.as_ref()
    }

    /// Clears the canvas, gives it the size of the scene, and draws the scene.
    pub(crate) fn draw(&mut self, canvas: &HtmlCanvasElement, scene: &Scene) {
        let (width, height) =
            (device_length(scene.width_px, self.ratio), device_length(scene.height_px, self.ratio));
        let Some(context) = cleared(canvas, width, height) else { return };
        // Without this property some browsers round the width of each letter to whole pixels. A browser that
        // does not know the property ignores it.
        let _ = js_sys::Reflect::set(&context, &"textRendering".into(), &"geometricPrecision".into());
        let mut brush = MarkPainter { paints: self, context: &context, fill: None, font: None };
        for mark in &scene.marks {
            brush.draw(mark);
        }
    }
}

/// Draws the part `share` of the picture `to` and the rest of the picture `from`, which have one size.
pub(crate) fn blend(
    canvas: &HtmlCanvasElement,
    from: &HtmlCanvasElement,
    to: &HtmlCanvasElement,
    share: f64,
) {
    let (width, height) = (to.width(), to.height());
    let Some(context) = cleared(canvas, width, height) else { return };
    let _ = context.set_global_composite_operation("lighter");
    for (picture, share) in [(from, 1.0 - share), (to, share)] {
        context.set_global_alpha(share);
        let _ = context.draw_image_with_html_canvas_element(picture, 0.0, 0.0);
    }
    context.set_global_alpha(1.0);
    let _ = context.set_global_composite_operation("source-over");
}

/// How opaque dots are on the screen: just enough to distinguish cached bytes from other green areas.
const SCREEN_DOTS: f64 = 0.45;

/// A new canvas, which is not in the page.
pub(crate) fn new_canvas() -> Option<HtmlCanvasElement> {
    browser::document()?.create_element("canvas").ok()?.dyn_into().ok()
}

/// Gives a canvas its size in pixels, unless it has that size.
pub(crate) fn set_size(canvas: &HtmlCanvasElement, width: u32, height: u32) {
    if (canvas.width(), canvas.height()) != (width, height) {
        canvas.set_width(width);
        canvas.set_height(height);
    }
}

/// The context of a canvas of this size, on which nothing is drawn.
fn cleared(canvas: &HtmlCanvasElement, width: u32, height: u32) -> Option<CanvasRenderingContext2d> {
    set_size(canvas, width, height);
    let context = context_of(canvas)?;
    context.clear_rect(0.0, 0.0, f64::from(width), f64::from(height));
    Some(context)
}

pub(crate) fn context_of(canvas: &HtmlCanvasElement) -> Option<CanvasRenderingContext2d> {
    canvas.get_context("2d").ok()??.dyn_into().ok()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a canvas has at most 16384 pixels a side"
)]
fn device_length(length_px: f32, ratio: f64) -> u32 {
    (f64::from(length_px) * ratio).round().clamp(1.0, 16384.0) as u32
}

fn make_pattern(color: &str, tile: Tile, ratio: f64, dots: f64) -> Option<CanvasPattern> {
    let canvas = new_canvas()?;
    // The side is a whole number of pixels. Otherwise a line would be seen between the tiles.
    let side = device_length(tile.size_px, ratio);
    let scale = f64::from(side) / f64::from(tile.size_px);
    canvas.set_width(side);
    canvas.set_height(side);
    let context = context_of(&canvas)?;
    context.set_fill_style_str(color);
    context.set_stroke_style_str(color);
    context.set_global_alpha(f64::from(tile.tint));
    context.fill_rect(0.0, 0.0, f64::from(side), f64::from(side));
    context.set_global_alpha(1.0);
    context.set_line_width(f64::from(tile.line_px) * scale);
    for [from_x, from_y, to_x, to_y] in tile.lines.iter().map(|line| line.map(|at| f64::from(at) * scale)) {
        context.begin_path();
        context.move_to(from_x, from_y);
        context.line_to(to_x, to_y);
        context.stroke();
    }
    context.set_global_alpha(dots);
    for [x, y, radius] in tile.dots.iter().map(|dot| dot.map(|at| f64::from(at) * scale)) {
        context.begin_path();
        context.arc(x, y, radius, 0.0, std::f64::consts::TAU).ok()?;
        context.fill();
    }
    context.create_pattern_with_html_canvas_element(&canvas, "repeat").ok()?
}

/// A rectangle in device pixels whose edges lie on pixel borders.
struct DeviceRect {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Draws marks. Remembers the fill and the font that the context has, because setting them is slow.
struct MarkPainter<'a> {
    paints: &'a mut Paints,
    context: &'a CanvasRenderingContext2d,
    fill: Option<Fill>,
    font: Option<(f32, Weight)>,
}

impl MarkPainter<'_> {
    fn draw(&mut self, mark: &Mark) {
        match mark {
            Mark::Rect { rect, fill, outline } => self.rect(*rect, *fill, *outline),
            Mark::Rounded { rect, fill, radius_px } => self.rounded(*rect, *fill, *radius_px),
            Mark::Frame { rect, role, dash, width_px } => self.frame(*rect, *role, *dash, *width_px),
            Mark::Line { from, to, role, dash, width_px } => {
                self.path(&[*from, *to], *role, *dash, *width_px);
            }
            Mark::Path { points, role, dash, width_px } => self.path(points, *role, *dash, *width_px),
            Mark::Area { points, fill } => {
                self.set_fill(*fill);
                self.trace(points, 0.0);
                self.context.fill();
            }
            Mark::Text { at, text, role, size_px, anchor, clip, weight } => {
                if let Some(clip) = clip {
                    let clip = self.snap(*clip);
                    self.context.save();
                    self.context.begin_path();
                    self.context.rect(clip.x, clip.y, clip.width, clip.height);
                    self.context.clip();
                }
                self.text(*at, text, *role, (*size_px, *weight), *anchor);
                if clip.is_some() {
                    self.context.restore();
                    (self.fill, self.font) = (None, None);
                }
            }
        }
    }

    fn device(&self, length_px: f32) -> f64 {
        f64::from(length_px) * self.paints.ratio
    }

    fn snap(&self, rect: Rect) -> DeviceRect {
        let (left, top) = (self.device(rect.x_px).round(), self.device(rect.y_px).round());
        let (right, bottom) = (self.device(rect.right_px()).round(), self.device(rect.bottom_px()).round());
        DeviceRect { x: left, y: top, width: (right - left).max(1.0), height: (bottom - top).max(1.0) }
    }

    fn rect(&mut self, rect: Rect, fill: Fill, outline: Option<Role>) {
        self.set_fill(fill);
        let place = self.snap(rect);
        self.context.fill_rect(place.x, place.y, place.width, place.height);
        if let Some(role) = outline {
            self.frame(rect, role, Dash::Solid, 1.0);
        }
    }

    fn rounded(&mut self, rect: Rect, fill: Fill, radius_px: f32) {
        self.set_fill(fill);
        let place = self.snap(rect);
        self.context.begin_path();
        let radius = self.device(radius_px);
        if self.context.round_rect_with_f64(place.x, place.y, place.width, place.height, radius).is_err() {
            self.context.rect(place.x, place.y, place.width, place.height);
        }
        self.context.fill();
    }

    fn frame(&mut self, rect: Rect, role: Role, dash: Dash, width_px: f32) {
        let width = self.set_stroke(role, dash, width_px);
        let place = self.snap(rect);
        self.context.stroke_rect(
            place.x + width / 2.0,
            place.y + width / 2.0,
            (place.width - width).max(0.0),
            (place.height - width).max(0.0),
        );
    }

    fn path(&mut self, points: &[Point], role: Role, dash: Dash, width_px: f32) {
        let width = self.set_stroke(role, dash, width_px);
        // A line with an odd width is sharp only if it lies on the middle of pixels.
        let shift = if width.rem_euclid(2.0) < 1.0 { 0.0 } else { 0.5 };
        self.trace(points, shift);
        self.context.stroke();
    }

    fn trace(&mut self, points: &[Point], shift: f64) {
        self.context.begin_path();
        let straight = points.len() == 2;
        for (index, point) in points.iter().enumerate() {
            let (mut x, mut y) = (self.device(point.x_px), self.device(point.y_px));
            if straight {
                (x, y) = (x.floor() + shift, y.floor() + shift);
            }
            if index == 0 {
                self.context.move_to(x, y);
            } else {
                self.context.line_to(x, y);
            }
        }
    }

    fn text(&mut self, at: Point, text: &str, role: Role, font: (f32, Weight), anchor: Anchor) {
        self.set_fill(Fill::solid(role));
        if self.font != Some(font) {
            let weight = if font.1 == Weight::Bold { "600" } else { "400" };
            self.context.set_font(&format!("{weight} {}px {FONT_FAMILY}", self.device(font.0)));
            self.font = Some(font);
        }
        self.context.set_text_align(match anchor {
            Anchor::Start => "left",
            Anchor::Middle => "center",
            Anchor::End => "right",
        });
        // The layout has assumed this width. Characters that the typeface lacks come from a font of the
        // system, which may be wider: such a text is compressed. A baseline on a whole pixel keeps the text
        // sharp.
        let most = self.device(text_width_px(text, font.0, font.1));
        let (x, y) = (self.device(at.x_px), self.device(at.y_px).round());
        let _ = self.context.fill_text_with_max_width(text, x, y, most);
    }

    fn set_fill(&mut self, fill: Fill) {
        if self.fill == Some(fill) {
            return;
        }
        self.fill = Some(fill);
        if fill.pattern == Pattern::Solid {
            self.context.set_fill_style_str(self.paints.color(fill.role));
        } else if let Some(pattern) = self.paints.pattern(fill) {
            self.context.set_fill_style_canvas_pattern(pattern);
        }
    }

    /// Sets color, dashes and width of lines. Returns the width in device pixels.
    fn set_stroke(&mut self, role: Role, dash: Dash, width_px: f32) -> f64 {
        let width = self.device(width_px).round().max(1.0);
        self.context.set_stroke_style_str(self.paints.color(role));
        self.context.set_line_width(width);
        let lengths = js_sys::Array::new();
        for length in dash.lengths_px() {
            lengths.push(&JsValue::from_f64(self.device(*length)));
        }
        let _ = self.context.set_line_dash(&lengths);
        width
    }
}
