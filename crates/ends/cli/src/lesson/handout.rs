//! The handout of lessons as one HTML document without other files.

use blockyard_figure::escaped;

use crate::typeface::font_faces;

const STYLE: &str = "
@page { size: A4; margin: 18mm 16mm; }
body { font: 11pt/1.45 \"Noto Sans\", \"Helvetica Neue\", Arial, sans-serif; color: #1b1f24; background: #fff;
  max-width: 46em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 20pt; margin: 0 0 .2em; } h2, h3 { font-size: 13pt; margin: 1.6em 0 .4em; }
section { break-inside: avoid; } .sheet { break-inside: auto; } .sheet + .sheet { break-before: page; }
.sheet-head { display: flex; gap: 1em; color: #555; } .sheet-head span { flex: 1 1 20%; border-bottom: 1px solid #1b1f24; }
.sheet-head span:first-child { flex: none; border: 0; } svg { display: block; width: 100%; height: auto; margin: .6em 0; }
code, pre { font-family: \"Noto Sans Mono\", ui-monospace, monospace; font-size: .92em; }
pre { border: 1px solid #c8ccd1; padding: .6em .8em; white-space: pre-wrap; }
.question { border-left: 3px solid #1b1f24; padding: .1em .8em; margin: .6em 0; }
.answer { border-bottom: 1px solid #1b1f24; height: 1.8em; } .lines { border: 1px solid #1b1f24; height: 9em; }
ol.choices { list-style: none; padding-left: 0; margin: .3em 0; }
ol.choices li::before { content: \"\\2610\\00a0\" counter(list-item, lower-alpha) \")\\00a0\"; }
.answers { break-before: page; break-inside: auto; } .answer-key + .answer-key { break-before: page; }
.answer-key table { border-collapse: collapse; font-size: 10pt; }
.answer-key :is(th, td) { padding: .2em .6em; vertical-align: top; text-align: left; border-bottom: 1px solid #c8ccd1; }
.answer-key pre { font-size: 9pt; }
.asked { font-size: 10pt; } .asked svg { width: auto; max-width: 100%; max-height: 39mm; } .asked p { margin: .5em 0; }
.quiet { color: #555; }
@media print { body { margin: 0; padding: 0; max-width: none; } }
";

/// A document of these parts of the handout.
pub(crate) fn document(title: &str, content: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{}</title>\n<style>{}{STYLE}</style>\n{}",
        escaped(title),
        font_faces(),
        content
    )
}
