//! Pages of paper, filled with sections that are not cut.
//!
//! A page has its number and the number of pages, so no page may need a second sheet of paper. The height of
//! a section is estimated from its figures and its lines; a test of the page prints every lesson and
//! compares.

use std::fmt::Write as _;

use blockyard_figure::escaped;

use crate::played::PlayedLesson;

/// The height of a page that is filled: less than the height of A4 and Letter between the margins of
/// browsers.
const PAGE_MM: f32 = 240.0;
/// The width between the margins.
const WIDTH_MM: f32 = 188.0;
/// The line with the lesson's title and the lines for a name and a date.
const HEAD_MM: f32 = 8.0;
/// The title and the summary on the first page.
const TITLE_MM: f32 = 24.0;
/// The room for the lines that solve an exercise.
const LINES_MM: f32 = 40.0;

/// How a sheet is set.
#[derive(Clone, Copy, Debug)]
struct Setting {
    line_mm: f32,
    /// The average number of letters in a line.
    letters: usize,
    /// The distance between paragraphs.
    gap_mm: f32,
    heading_mm: f32,
    /// The largest height of a figure.
    most_figure_mm: f32,
}

const WIDE: Setting =
    Setting { line_mm: 5.7, letters: 84, gap_mm: 2.0, heading_mm: 13.0, most_figure_mm: f32::MAX };
const COMPACT: Setting =
    Setting { line_mm: 5.2, letters: 98, gap_mm: 1.6, heading_mm: 11.0, most_figure_mm: 40.0 };

/// The pages that sections are put on.
#[derive(Clone, Debug)]
pub(crate) struct Sheets {
    pages: Vec<String>,
    /// How much of the last page is filled.
    used_mm: f32,
    setting: Setting,
}

impl Sheets {
    /// Pages for reading: figures as wide as the page.
    pub(crate) fn wide() -> Self {
        Self { pages: Vec::new(), used_mm: 0.0, setting: WIDE }
    }

    /// Pages with small figures and lines, for questions alone.
    pub(crate) fn compact() -> Self {
        Self { setting: COMPACT, ..Self::wide() }
    }

    /// Whether the section has room on the last page. An empty page has room for any.
    pub(crate) fn has_room(&self, section: &str) -> bool {
        let is_empty = self.pages.last().is_none_or(String::is_empty);
        is_empty || self.used_mm + self.setting.height_mm(section) <= PAGE_MM
    }

    /// The last page.
    pub(crate) fn last(&self) -> &str {
        self.pages.last().map_or("", String::as_str)
    }

    /// Adds a section to the last page, or to a new page if the last page has no room for it.
    pub(crate) fn add(&mut self, section: &str) {
        if self.pages.is_empty() || !self.has_room(section) {
            self.break_page();
        }
        self.used_mm += self.setting.height_mm(section);
        if let Some(page) = self.pages.last_mut() {
            page.push_str(section);
        }
    }

    /// Begins a page, unless the last one is empty.
    pub(crate) fn break_page(&mut self) {
        if self.pages.last().is_some_and(String::is_empty) {
            return;
        }
        self.used_mm = HEAD_MM + if self.pages.is_empty() { TITLE_MM } else { 0.0 };
        self.pages.push(String::new());
    }

    /// The pages with their heads: the lesson, the number of the page, and lines for the student's name and
    /// the date.
    pub(crate) fn html(&self, lesson: &PlayedLesson) -> String {
        let pages: Vec<_> = self.pages.iter().filter(|page| !page.is_empty()).collect();
        let (count, title) = (pages.len(), escaped(&lesson.title));
        let mut sheets = String::new();
        for (index, page) in pages.into_iter().enumerate() {
            let _ = writeln!(
                sheets,
                "<section class=\"sheet\">\n<p class=\"sheet-head\"><span>{title}, page {} of {count}</span> <span>Name:</span> \
                 <span>Date:</span></p>",
                index + 1
            );
            if index == 0 {
                let _ = writeln!(sheets, "<h1>{title}</h1>\n<p>{}</p>", escaped(&lesson.summary));
            }
            sheets.push_str(page);
            sheets.push_str("</section>\n");
        }
        sheets
    }
}

impl Setting {
    /// About how high a section of HTML is on paper.
    fn height_mm(&self, html: &str) -> f32 {
        let mut height = 0.0;
        let mut letters = 0;
        let mut rest = html;
        while let Some((text, after)) = rest.split_once('<') {
            letters += text.trim().chars().count();
            let (tag, after) = after.split_once('>').unwrap_or((after, ""));
            rest = after;
            if tag.starts_with("svg ") {
                height += self.figure_mm(tag) + self.gap_mm;
                rest = after_figure(after);
            } else if tag.starts_with("pre") {
                let (code, after) = after.split_once("</pre>").unwrap_or((after, ""));
                height += self.code_mm(code);
                rest = after;
            } else {
                match tag {
                    "/p" => height += self.lines_mm(letters) + self.gap_mm,
                    "/li" => height += self.lines_mm(letters),
                    "/ol" | "/ul" => height += 2.0 * self.gap_mm,
                    "/h2" | "/h3" => height += self.lines_mm(letters) + self.heading_mm - self.line_mm,
                    "div class=\"lines\"" => height += LINES_MM,
                    _ => continue,
                }
                letters = 0;
            }
        }
        height
    }

    fn lines_mm(&self, letters: usize) -> f32 {
        self.line_mm * count(letters.div_ceil(self.letters).max(1))
    }

    /// Lines of code have wider letters; a long one is broken.
    fn code_mm(&self, code: &str) -> f32 {
        let lines: usize =
            code.lines().map(|line| (line.chars().count() * 5 / 4).div_ceil(self.letters).max(1)).sum();
        self.line_mm * count(lines) + 6.0
    }

    /// The height of a figure that is as wide as the page, from its attributes.
    fn figure_mm(&self, tag: &str) -> f32 {
        // Whole pixels are enough, and the page then needs no code that reads decimals.
        let attribute = |name: &str| {
            let (_, value) = tag.split_once(&format!(" {name}=\""))?;
            value.split(['"', '.']).next()?.parse::<usize>().ok()
        };
        let shape = attribute("height").zip(attribute("width")).filter(|(_, width)| *width > 0);
        let height = shape.map_or(0.0, |(height, width)| WIDTH_MM * count(height) / count(width));
        height.min(self.most_figure_mm)
    }
}

/// The HTML after a figure; figures may contain smaller figures, whose ends are passed.
fn after_figure(html: &str) -> &str {
    let mut depth = 1_usize;
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let tag = rest.get(at..).unwrap_or_default();
        if tag.starts_with("</svg>") {
            depth -= 1;
        } else if tag.starts_with("<svg ") {
            depth += 1;
        }
        rest = tag.get(1..).unwrap_or_default();
        if depth == 0 {
            return rest.split_once('>').map_or("", |(_, after)| after);
        }
    }
    ""
}

fn count(number: usize) -> f32 {
    f32::from(u16::try_from(number).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_as_high_as_its_figure_and_its_lines() {
        let figure = "<svg xmlns=\"x\" width=\"720\" height=\"360\"><svg x=\"1\"><text>no line</text></svg></svg>\n<p>After.</p>";
        let (wide, compact) = (WIDE.height_mm(figure), COMPACT.height_mm(figure));
        let line = WIDE.line_mm + 2.0 * WIDE.gap_mm;
        assert!((wide - WIDTH_MM / 2.0 - line).abs() < 0.1, "{wide}");
        assert!((compact - 40.0 - COMPACT.line_mm - 2.0 * COMPACT.gap_mm).abs() < 0.1, "{compact}");
        let long = format!("<p>{}</p>", "word ".repeat(40));
        assert!(WIDE.height_mm(&long) > WIDE.height_mm("<p>word</p>") + WIDE.line_mm);
        assert!(WIDE.height_mm("<pre class=\"code\">a\nb\nc</pre>") > 2.9 * WIDE.line_mm);
        assert!(WIDE.height_mm("<div class=\"lines\"></div>") > 30.0);
    }

    #[test]
    fn a_full_page_is_followed_by_another_and_no_section_is_lost() {
        let mut sheets = Sheets::wide();
        let section = format!("<section><p>{}</p></section>", "word ".repeat(200));
        for _ in 0..5 {
            sheets.add(&section);
        }
        assert_eq!(sheets.pages.concat().matches("<section>").count(), 5);
        assert_eq!(sheets.pages.len(), 2, "{:?}", sheets.pages.iter().map(String::len).collect::<Vec<_>>());
        sheets.break_page();
        sheets.break_page();
        assert_eq!(sheets.pages.len(), 3, "an empty page is not followed by another");
        // What is higher than a page has a page.
        let mut sheets = Sheets::compact();
        sheets.add(&section.repeat(9));
        assert_eq!(sheets.pages.len(), 1);
    }
}
