//! The typeface of the page, of figures and of printed pages: Noto Sans, in the folder `typeface` with its
//! license. A text has the same width on every machine, whatever fonts the machine has.

/// One face of the typeface, in two formats.
#[derive(Clone, Copy, Debug)]
pub struct Face {
    /// The family in CSS and in the file.
    pub family: &'static str,
    /// The weights of CSS that the face serves, the lowest and the highest.
    pub weights: [u16; 2],
    /// The name of the file in the folder `typeface` of the built page.
    pub file: &'static str,
    /// For browsers.
    pub woff2: &'static [u8],
    /// For programs.
    pub ttf: &'static [u8],
}

/// Running text.
pub const SANS_REGULAR: Face = Face {
    family: "Noto Sans",
    weights: [400, 500],
    file: "sans-regular.woff2",
    woff2: include_bytes!("../typeface/sans-regular.woff2"),
    ttf: include_bytes!("../typeface/sans-regular.ttf"),
};

/// Headings and emphasized text.
pub const SANS_SEMIBOLD: Face = Face {
    family: "Noto Sans",
    weights: [501, 900],
    file: "sans-semibold.woff2",
    woff2: include_bytes!("../typeface/sans-semibold.woff2"),
    ttf: include_bytes!("../typeface/sans-semibold.ttf"),
};

/// Code.
pub const MONO_REGULAR: Face = Face {
    family: "Noto Sans Mono",
    weights: [400, 900],
    file: "mono-regular.woff2",
    woff2: include_bytes!("../typeface/mono-regular.woff2"),
    ttf: include_bytes!("../typeface/mono-regular.ttf"),
};

/// All faces.
pub const FACES: [Face; 3] = [SANS_REGULAR, SANS_SEMIBOLD, MONO_REGULAR];

/// The fonts that figures are measured for, and then fonts that most machines have, for a program without the
/// typeface that shows a figure.
pub const FONT_FAMILY: &str = "\"Noto Sans\", \"Helvetica Neue\", Arial, \"Liberation Sans\", sans-serif";
