//! The typeface inside of a document that needs no other file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blockyard_figure::typeface::{FACES, Face};

/// Rules of CSS that contain the typeface.
pub fn font_faces() -> String {
    FACES.iter().map(rule).collect()
}

fn rule(face: &Face) -> String {
    let [lowest, highest] = face.weights;
    format!(
        "@font-face {{ font-family: \"{}\"; font-weight: {lowest} {highest}; src: url(\"{}\") format(\"woff2\"); }}\n",
        face.family,
        address(face)
    )
}

/// The page's style with the fonts inside, instead of links to their files.
pub(crate) fn with_fonts_inside(style: &str) -> String {
    let replace =
        |style: String, face: &Face| style.replace(&format!("./typeface/{}", face.file), &address(face));
    FACES.iter().fold(style.to_owned(), replace)
}

fn address(face: &Face) -> String {
    format!("data:font/woff2;base64,{}", STANDARD.encode(face.woff2))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_pages_style_names_every_face_and_no_other_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../web/style");
        let parts = std::fs::read_dir(folder).unwrap().map(|part| part.unwrap().path());
        let style: String = parts.map(|part| std::fs::read_to_string(part).unwrap()).collect();
        let inside = with_fonts_inside(&style);
        assert_eq!(inside.matches("url(\"data:font/woff2;base64,").count(), FACES.len());
        assert_eq!(inside.matches("url(").count(), FACES.len());
        for Face { family, weights: [lowest, highest], file, .. } in FACES {
            let rule = format!(
                "@font-face {{\n  font-family: \"{family}\";\n  font-weight: {lowest} {highest};\n  src: \
                 url(\"./typeface/{file}\")"
            );
            assert!(style.contains(&rule), "{rule}");
        }
    }
}
