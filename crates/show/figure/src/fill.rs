//! Fills: a color, with a pattern that distinguishes the fill without color.

use crate::role::{BreakdownClass, Role};

/// The area between the two bounds of a limit of which only the bounds are known.
pub(crate) const WITHIN_LIMIT: Fill = Fill { role: Role::Limit, pattern: Pattern::Faint };

/// The area of bytes that a process may not reserve: a grey with thin lines, on which a text can be read.
pub(crate) const BEYOND_LIMIT: Fill = Fill { role: Role::Free, pattern: Pattern::Barred };

/// How an inside is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fill {
    /// The color.
    pub role: Role,
    /// The pattern, which distinguishes the fill without color.
    pub pattern: Pattern,
}

impl Fill {
    /// The color without a pattern.
    #[must_use]
    pub const fn solid(role: Role) -> Self {
        Self { role, pattern: Pattern::Solid }
    }

    /// The fill of a class.
    #[must_use]
    pub fn of(class: BreakdownClass) -> Self {
        let pattern = match class {
            BreakdownClass::Requested => Pattern::Solid,
            BreakdownClass::Rounding => Pattern::BackHatch,
            BreakdownClass::Pending => Pattern::Hatch,
            BreakdownClass::Cached => Pattern::Dots,
            BreakdownClass::Free => Pattern::Faint,
        };
        Self { role: class.role(), pattern }
    }
}

/// A repeating drawing in one color; see [`Pattern::tile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// The color alone.
    Solid,
    /// A light tint of the color, nothing else.
    Faint,
    /// A stronger tint of the color, nothing else.
    Tint,
    /// A tint between [`Tint`](Self::Tint) and the color, nothing else.
    Strong,
    /// Lines that rise to the right, on a tint.
    Hatch,
    /// Lines that fall to the right, on a tint, closer together.
    BackHatch,
    /// Dots on a tint.
    Dots,
    /// Lines both ways on a tint.
    Cross,
    /// Thin level lines on a tint.
    Lines,
    /// Thin lines that rise to the right, far apart, on a light tint.
    Barred,
}

/// The square tile that a pattern repeats, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tile {
    /// The side of the tile.
    pub size_px: f32,
    /// How opaque the color lies under the drawing, from 0 to 1.
    pub tint: f32,
    /// Lines as `[from x, from y, to x, to y]`; cut at the tile's edges.
    pub lines: &'static [[f32; 4]],
    /// The width of the lines.
    pub line_px: f32,
    /// Dots as `[x, y, radius]`.
    pub dots: &'static [[f32; 3]],
}

impl Tile {
    /// How much of a pixel the dots of the tile cover, from 0 to 1: the pixel is `pixel_px` wide, and its
    /// middle is at `x_px`, `y_px` of the tiled plane.
    pub fn dots_cover(&self, x_px: f32, y_px: f32, pixel_px: f32) -> f32 {
        let within = |at: f32| at - (at / self.size_px).floor() * self.size_px;
        let (x, y) = (within(x_px), within(y_px));
        let cover = |[dot_x, dot_y, radius]: &[f32; 3]| {
            ((radius - (x - dot_x).hypot(y - dot_y)) / pixel_px.max(f32::MIN_POSITIVE) + 0.5).clamp(0.0, 1.0)
        };
        self.dots.iter().map(cover).fold(0.0, f32::max)
    }
}

impl Pattern {
    /// Every pattern.
    pub const ALL: [Self; 10] = [
        Self::Solid,
        Self::Faint,
        Self::Tint,
        Self::Strong,
        Self::Hatch,
        Self::BackHatch,
        Self::Dots,
        Self::Cross,
        Self::Lines,
        Self::Barred,
    ];

    /// The name, for identifiers of renderers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Solid => "solid",
            Self::Faint => "faint",
            Self::Tint => "tint",
            Self::Strong => "strong",
            Self::Hatch => "hatch",
            Self::BackHatch => "back-hatch",
            Self::Dots => "dots",
            Self::Cross => "cross",
            Self::Lines => "lines",
            Self::Barred => "barred",
        }
    }

    /// The tile that the pattern repeats, so that every renderer draws the same.
    pub fn tile(self) -> Tile {
        let plain = Tile { size_px: 8.0, tint: 1.0, lines: &[], line_px: 0.0, dots: &[] };
        match self {
            Self::Solid => plain,
            Self::Faint => Tile { tint: 0.12, ..plain },
            Self::Tint => Tile { tint: 0.4, ..plain },
            Self::Strong => Tile { tint: 0.65, ..plain },
            Self::Hatch => Tile {
                tint: 0.3,
                // The two short lines complete the corners, so that neighboring tiles join without a gap.
                lines: &[[0.0, 8.0, 8.0, 0.0], [-2.0, 2.0, 2.0, -2.0], [6.0, 10.0, 10.0, 6.0]],
                line_px: 2.0,
                ..plain
            },
            Self::BackHatch => Tile {
                size_px: 5.0,
                tint: 0.35,
                lines: &[[0.0, 0.0, 5.0, 5.0], [-1.5, 3.5, 1.5, 6.5], [3.5, -1.5, 6.5, 1.5]],
                line_px: 1.6,
                ..plain
            },
            Self::Dots => {
                Tile { size_px: 6.0, tint: 0.22, dots: &[[1.5, 1.5, 0.9], [4.5, 4.5, 0.9]], ..plain }
            }
            Self::Cross => Tile {
                size_px: 6.0,
                tint: 0.2,
                lines: &[[0.0, 0.0, 6.0, 6.0], [0.0, 6.0, 6.0, 0.0]],
                line_px: 1.0,
                ..plain
            },
            Self::Lines => {
                Tile { size_px: 4.0, tint: 0.3, lines: &[[0.0, 2.0, 4.0, 2.0]], line_px: 1.0, ..plain }
            }
            Self::Barred => Tile {
                tint: 0.14,
                lines: &[[0.0, 8.0, 8.0, 0.0], [-2.0, 2.0, 2.0, -2.0], [6.0, 10.0, 10.0, 6.0]],
                line_px: 0.7,
                ..plain
            },
        }
    }
}
