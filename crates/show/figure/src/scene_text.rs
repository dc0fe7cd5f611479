//! A scene as text with a line for each mark, for tests and debugging.

use std::fmt;

use crate::fill::Pattern;
use crate::geometry::{Point, Rect};
use crate::scene::{Anchor, Dash, Mark, Scene, Weight};
use crate::text_width::text_width_px;

impl Mark {
    /// A rectangle that holds the mark; for a text an estimate that is rather too large than too small.
    pub fn bounds(&self) -> Rect {
        match self {
            Self::Rect { rect, .. } | Self::Rounded { rect, .. } | Self::Frame { rect, .. } => *rect,
            Self::Line { from, to, width_px, .. } => around(&[*from, *to], *width_px),
            Self::Path { points, width_px, .. } => around(points, *width_px),
            Self::Area { points, .. } => around(points, 0.0),
            Self::Text { at, text, size_px, anchor, weight, .. } => {
                let width = text_width_px(text, *size_px, *weight);
                let left = match anchor {
                    Anchor::Start => at.x_px,
                    Anchor::Middle => at.x_px - width / 2.0,
                    Anchor::End => at.x_px - width,
                };
                Rect::new(left, at.y_px - size_px * 0.78, width, *size_px)
            }
        }
    }
}

fn around(points: &[Point], width_px: f32) -> Rect {
    let Some(first) = points.first() else { return Rect::default() };
    let (mut low, mut high) = (*first, *first);
    for point in points {
        low = Point::new(low.x_px.min(point.x_px), low.y_px.min(point.y_px));
        high = Point::new(high.x_px.max(point.x_px), high.y_px.max(point.y_px));
    }
    Rect::new(low.x_px, low.y_px, high.x_px - low.x_px, high.y_px - low.y_px).grown(width_px / 2.0)
}

/// A line a mark, then a line a target.
impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "scene {} x {}", Px(self.width_px), Px(self.height_px))?;
        for mark in &self.marks {
            writeln!(f, "{mark}")?;
        }
        for target in &self.targets {
            writeln!(f, "target {} {:?}", RectText(target.rect), target.what)?;
        }
        Ok(())
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rect { rect, fill, outline } => {
                write!(f, "rect {} {:?}", RectText(*rect), fill.role)?;
                if fill.pattern != Pattern::Solid {
                    write!(f, " {}", fill.pattern.name())?;
                }
                outline.map_or(Ok(()), |role| write!(f, " outline {role:?}"))
            }
            Self::Rounded { rect, fill, radius_px } => {
                write!(f, "rounded {} {:?} {}", RectText(*rect), fill.role, fill.pattern.name())?;
                write!(f, " radius {}", Px(*radius_px))
            }
            Self::Frame { rect, role, dash, width_px } => {
                write!(f, "frame {} {role:?}{}", RectText(*rect), Stroke(*dash, *width_px))
            }
            Self::Line { from, to, role, dash, width_px } => {
                write!(f, "line {} {role:?}{}", Points(&[*from, *to]), Stroke(*dash, *width_px))
            }
            Self::Path { points, role, dash, width_px } => {
                write!(f, "path {} {role:?}{}", Points(points), Stroke(*dash, *width_px))
            }
            Self::Area { points, fill } => {
                write!(f, "area {} {:?}", Points(points), fill.role)?;
                if fill.pattern == Pattern::Solid { Ok(()) } else { write!(f, " {}", fill.pattern.name()) }
            }
            Self::Text { at, text, role, size_px, anchor, clip, weight } => {
                write!(f, "text {text:?} {} {}px {role:?}", Points(&[*at]), Px(*size_px))?;
                match anchor {
                    Anchor::Start => {}
                    Anchor::Middle => f.write_str(" middle")?,
                    Anchor::End => f.write_str(" end")?,
                }
                if *weight == Weight::Bold {
                    f.write_str(" bold")?;
                }
                clip.map_or(Ok(()), |clip| write!(f, " clip {}", RectText(clip)))
            }
        }
    }
}

/// A length to a tenth.
struct Px(f32);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        f.write_str(text.strip_suffix(".0").unwrap_or(&text))
    }
}

struct RectText(Rect);

impl fmt::Display for RectText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rect { x_px, y_px, width_px, height_px } = self.0;
        write!(f, "{},{} {}x{}", Px(x_px), Px(y_px), Px(width_px), Px(height_px))
    }
}

struct Points<'a>(&'a [Point]);

impl fmt::Display for Points<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, point) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{},{}", Px(point.x_px), Px(point.y_px))?;
        }
        Ok(())
    }
}

struct Stroke(Dash, f32);

impl fmt::Display for Stroke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Dash::Solid => {}
            Dash::Dashed => f.write_str(" dashed")?,
            Dash::Dotted => f.write_str(" dotted")?,
        }
        if (self.1 - 1.0).abs() < f32::EPSILON { Ok(()) } else { write!(f, " {}px", Px(self.1)) }
    }
}
