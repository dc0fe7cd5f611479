//! A scene as an SVG document, for files and slides.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect};
use crate::markup::escaped;
use crate::role::Role;
use crate::scene::{Anchor, Dash, Mark, Scene, Weight};
use crate::text_width::{is_measured, text_width_px};
use crate::theme::Theme;
use crate::typeface::FONT_FAMILY;

impl Scene {
    /// The scene as a complete SVG document. Screen readers read `title` and `description`.
    ///
    /// The document holds no font. Each text says its width, so that a program without the typeface squeezes
    /// or spreads the text of another font to that width, and no text lies over another.
    pub fn to_svg(&self, theme: Theme, title: &str, description: &str) -> String {
        let (width, height) = (number(self.width_px), number(self.height_px));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{}\">\n<title>{}</title>\n<desc>{}</desc>\n",
            escaped(FONT_FAMILY),
            escaped(title),
            escaped(description),
        );
        self.write_patterns(&mut out, theme);
        let whole = Rect::new(0.0, 0.0, self.width_px, self.height_px);
        write_rect(&mut out, &whole, &format!("fill=\"{}\"", theme.color(Role::Background)));
        for mark in &self.marks {
            write_mark(&mut out, theme, mark);
        }
        out.push_str("</svg>\n");
        out
    }

    fn write_patterns(&self, out: &mut String, theme: Theme) {
        let used: BTreeSet<(Role, Pattern)> = self
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Rect { fill, .. } | Mark::Rounded { fill, .. } | Mark::Area { fill, .. } => {
                    Some((fill.role, fill.pattern))
                }
                _ => None,
            })
            .filter(|(_, pattern)| !is_plain(*pattern))
            .collect();
        if used.is_empty() {
            return;
        }
        out.push_str("<defs>\n");
        for (role, pattern) in used {
            write_pattern(out, theme, role, pattern);
        }
        out.push_str("</defs>\n");
    }
}

fn is_plain(pattern: Pattern) -> bool {
    let tile = pattern.tile();
    tile.lines.is_empty() && tile.dots.is_empty()
}

// The ids depend only on the drawing, so that several documents in one page can share a definition.
fn pattern_id(theme: Theme, role: Role, pattern: Pattern) -> String {
    let theme = match theme {
        Theme::Light => "light",
        Theme::LightFile => "file",
        Theme::Dark => "dark",
        Theme::Page => "page",
    };
    format!(
        "blockyard-{theme}{}-{}",
        role.css_variable().trim_start_matches('-').trim_start_matches("role"),
        pattern.name()
    )
}

fn write_pattern(out: &mut String, theme: Theme, role: Role, pattern: Pattern) {
    let (tile, color) = (pattern.tile(), theme.color(role));
    let size = number(tile.size_px);
    // The background below the tint must be opaque; otherwise marks under a block would be visible.
    let _ = write!(
        out,
        "<pattern id=\"{}\" width=\"{size}\" height=\"{size}\" patternUnits=\"userSpaceOnUse\">\
         <path d=\"M0 0h{size}v{size}h-{size}z\" fill=\"{}\"/><path d=\"M0 0h{size}v{size}h-{size}z\" fill=\"{color}\" \
         fill-opacity=\"{}\"/>",
        pattern_id(theme, role, pattern),
        theme.color(Role::Background),
        number(tile.tint),
    );
    if !tile.lines.is_empty() {
        let path = tile.lines.iter().fold(String::new(), |path, [from_x, from_y, to_x, to_y]| {
            format!("{path}M{} {}L{} {}", number(*from_x), number(*from_y), number(*to_x), number(*to_y))
        });
        let _ =
            write!(out, "<path d=\"{path}\" stroke=\"{color}\" stroke-width=\"{}\"/>", number(tile.line_px));
    }
    for [x, y, radius] in tile.dots {
        let _ = write!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{color}\"/>",
            number(*x),
            number(*y),
            number(*radius)
        );
    }
    out.push_str("</pattern>\n");
}

fn fill_attribute(theme: Theme, fill: Fill) -> String {
    if !is_plain(fill.pattern) {
        return format!("fill=\"url(#{})\"", pattern_id(theme, fill.role, fill.pattern));
    }
    let color = theme.color(fill.role);
    let tint = fill.pattern.tile().tint;
    if tint < 1.0 {
        return format!("fill=\"{color}\" fill-opacity=\"{}\"", number(tint));
    }
    format!("fill=\"{color}\"")
}

fn stroke_attributes(theme: Theme, role: Role, dash: Dash, width_px: f32) -> String {
    let mut text = format!("stroke=\"{}\" stroke-width=\"{}\"", theme.color(role), number(width_px));
    let lengths: Vec<_> = dash.lengths_px().iter().map(|length| number(*length)).collect();
    if !lengths.is_empty() {
        let _ = write!(text, " stroke-dasharray=\"{}\"", lengths.join(" "));
    }
    text
}

fn write_mark(out: &mut String, theme: Theme, mark: &Mark) {
    match mark {
        Mark::Rect { rect, fill, outline } => {
            write_rect(out, rect, &fill_attribute(theme, *fill));
            if let Some(role) = outline {
                write_frame(out, theme, rect, *role, Dash::Solid, 1.0);
            }
        }
        Mark::Rounded { rect, fill, radius_px } => {
            let round = format!("rx=\"{}\" {}", number(*radius_px), fill_attribute(theme, *fill));
            write_rect(out, rect, &round);
        }
        Mark::Frame { rect, role, dash, width_px } => write_frame(out, theme, rect, *role, *dash, *width_px),
        Mark::Line { from, to, role, dash, width_px } => {
            let _ = writeln!(
                out,
                "<path d=\"{}\" {}/>",
                path(&[*from, *to]),
                stroke_attributes(theme, *role, *dash, *width_px)
            );
        }
        Mark::Path { points, role, dash, width_px } => {
            let _ = writeln!(
                out,
                "<path d=\"{}\" fill=\"none\" stroke-linejoin=\"round\" {}/>",
                path(points),
                stroke_attributes(theme, *role, *dash, *width_px)
            );
        }
        Mark::Area { points, fill } => {
            let _ = writeln!(out, "<path d=\"{}z\" {}/>", path(points), fill_attribute(theme, *fill));
        }
        Mark::Text { .. } => write_text(out, theme, mark),
    }
}

fn write_rect(out: &mut String, rect: &Rect, attributes: &str) {
    let _ = writeln!(
        out,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {attributes}/>",
        number(rect.x_px),
        number(rect.y_px),
        number(rect.width_px),
        number(rect.height_px),
    );
}

fn write_frame(out: &mut String, theme: Theme, rect: &Rect, role: Role, dash: Dash, width_px: f32) {
    let inner = rect.grown(-width_px / 2.0);
    write_rect(out, &inner, &format!("fill=\"none\" {}", stroke_attributes(theme, role, dash, width_px)));
}

fn write_text(out: &mut String, theme: Theme, mark: &Mark) {
    let Mark::Text { at, text, role, size_px, anchor, clip, weight } = mark else { return };
    // A nested `svg` element cuts the text without an identifier, which could equal an identifier of another
    // document in the same page.
    let origin = clip.map_or(Point::default(), |clip| Point::new(clip.x_px, clip.y_px));
    if let Some(clip) = clip {
        let _ = write!(
            out,
            "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">",
            number(clip.x_px),
            number(clip.y_px),
            number(clip.width_px),
            number(clip.height_px)
        );
    }
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let length = text_length(text, *size_px, *weight);
    let weight = if *weight == Weight::Bold { " font-weight=\"600\"" } else { "" };
    let _ = write!(
        out,
        "<text x=\"{}\" y=\"{}\" font-size=\"{}\"{anchor}{weight}{length} fill=\"{}\">{}</text>",
        number(at.x_px - origin.x_px),
        number(at.y_px - origin.y_px),
        number(*size_px),
        theme.color(*role),
        escaped(&text.replace(['\t', '\n', '\r'], " ")),
    );
    out.push_str(if clip.is_some() { "</svg>\n" } else { "\n" });
}

/// The attributes that give the text the width that the layout assumed. Empty for one character, and where
/// the typeface lacks a character, since the width is an estimate then.
fn text_length(text: &str, size_px: f32, weight: Weight) -> String {
    if text.chars().count() < 2 || !is_measured(text) {
        return String::new();
    }
    let width = number(text_width_px(text, size_px, weight));
    format!(" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\"")
}

fn path(points: &[Point]) -> String {
    let mut text = String::with_capacity(points.len() * 12);
    for (index, point) in points.iter().enumerate() {
        text.push(if index == 0 { 'M' } else { 'L' });
        let _ = write!(text, "{} {}", number(point.x_px), number(point.y_px));
    }
    text
}

/// The number with at most two decimals; 0 for a value that is not a number.
fn number(value: f32) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::TextStyle;

    #[test]
    fn hostile_names_stay_text() {
        let mut scene = Scene::new(10.0, 10.0);
        scene.add_text(Point::new(1.0, 2.0), "</text><script>\u{1}&\"", TextStyle::new(Role::Text, 11.0));
        let svg = scene.to_svg(Theme::Light, "<b>", "a & b");
        assert!(!svg.contains("<script>") && !svg.contains("<b>") && !svg.contains('\u{1}'), "{svg}");
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;\u{fffd}&amp;&quot;"), "{svg}");
    }

    #[test]
    fn numbers_are_short_and_never_break_the_document() {
        for (value, text) in [(1.0, "1"), (0.5, "0.5"), (1.0 / 3.0, "0.33"), (-0.001, "0"), (f32::NAN, "0")] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_tint_is_no_darker_in_a_file_than_on_the_screen() {
        for pattern in [Pattern::Faint, Pattern::Tint, Pattern::Strong] {
            let mut scene = Scene::new(10.0, 10.0);
            scene.add_rect(Rect::new(0.0, 0.0, 5.0, 5.0), Fill { role: Role::Requested, pattern }, None);
            let svg = scene.to_svg(Theme::Light, "", "");
            let opacity = format!("fill-opacity=\"{}\"", number(pattern.tile().tint));
            assert!(svg.contains(&opacity), "{pattern:?}: {svg}");
        }
    }

    #[test]
    fn a_pattern_is_defined_once_however_often_it_is_used() {
        let mut scene = Scene::new(10.0, 10.0);
        let fill = Fill { role: Role::Cached, pattern: Pattern::Dots };
        for _ in 0..3 {
            scene.add_rect(Rect::new(0.0, 0.0, 5.0, 5.0), fill, None);
        }
        let svg = scene.to_svg(Theme::Dark, "", "");
        assert_eq!(svg.matches("<pattern ").count(), 1);
        assert_eq!(svg.matches("url(#blockyard-dark-cached-dots)").count(), 3);
    }
}
