//! `index.html` as Trunk reads it: the programs, the files, and the text that the browser gets.
//!
//! Only the directives that the page uses are understood; any other is an error, so that a difference from
//! Trunk is always reported. This module reads and writes no file.

use anyhow::{Context, Result, bail, ensure};

/// The file of the style, in which the browser gets all parts at once. Trunk does not join them.
pub(crate) const STYLE: &str = "style.css";

/// The page: its text without directives, and the files of the directives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) html: String,
    /// The page's own program, then the programs that it loads when it needs them.
    pub(crate) programs: Vec<Program>,
    /// The paths of the parts of the style in the repository, in the order of the cascade. They are joined to
    /// [`STYLE`].
    pub(crate) styles: Vec<String>,
    /// All other files, in the order of `index.html`.
    pub(crate) assets: Vec<Asset>,
}

/// A program: `<link data-trunk rel="rust">` is the page's own, with `data-type="worker"` it is one that only
/// gets a module of JavaScript beside it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) is_own: bool,
    pub(crate) manifest: String,
    pub(crate) bin: String,
    pub(crate) profile: String,
}

/// A file or folder of the repository that goes with the page; both paths with `/`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asset {
    File { source: String, target: String },
    Folder { source: String, target: String },
}

/// A tag of the text, with its place.
struct Tag<'html> {
    start: usize,
    end: usize,
    name: &'html str,
    attributes: Vec<(&'html str, &'html str)>,
}

impl<'html> Tag<'html> {
    fn get(&self, name: &str) -> Option<&'html str> {
        self.attributes.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    fn need(&self, name: &str) -> Result<&'html str> {
        self.get(name).with_context(|| format!("`{name}` is missing"))
    }

    fn allow(&self, names: &[&str]) -> Result<()> {
        for (name, _) in &self.attributes {
            let known = ["data-trunk", "rel", "href"].contains(name) || names.contains(name);
            ensure!(known, "`{name}` is not supported here");
        }
        Ok(())
    }

    /// The path of the file or folder of `href` in the repository, and its path below `dist/`.
    fn paths(&self) -> Result<(String, String)> {
        let source = self.need("href")?;
        let name = source.rsplit('/').next().unwrap_or(source);
        let target = match self.get("data-target-path") {
            Some(folder) => format!("{folder}/{name}"),
            None => name.to_owned(),
        };
        for path in [source, &target] {
            let plain = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
            ensure!(plain, "`{path}` is not a plain path inside the repository");
        }
        Ok((source.to_owned(), target))
    }
}

impl Page {
    /// Reads the text of `index.html`.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let mut page =
            Self { html: String::new(), programs: Vec::new(), styles: Vec::new(), assets: Vec::new() };
        let mut copied = 0;
        for tag in tags(text)? {
            if tag.get("data-trunk").is_none() {
                continue;
            }
            page.html.push_str(&text[copied..tag.start]);
            copied = tag.end;
            let seen = directive(&tag, &mut page)
                .with_context(|| format!("index.html: {}", &text[tag.start..tag.end]))?;
            page.html.push_str(&seen);
        }
        page.html.push_str(&text[copied..]);
        let own = page.programs.iter().filter(|program| program.is_own).count();
        ensure!(own == 1, "index.html: need exactly one <link data-trunk rel=\"rust\"> without a data-type");
        page.programs.sort_by_key(|program| !program.is_own);
        Ok(page)
    }
}

/// Reads a directive into `page`, and returns the text that replaces the directive in the page.
fn directive(tag: &Tag<'_>, page: &mut Page) -> Result<String> {
    ensure!(tag.name == "link", "only <link data-trunk> is supported");
    let rel = tag.need("rel")?;
    match rel {
        "rust" => {
            tag.allow(&[
                "data-bin",
                "data-cargo-profile",
                "data-wasm-opt",
                "data-type",
                "data-bindgen-target",
            ])?;
            // Bindings are always modules here; Trunk makes modules for workers only if its settings say so.
            let is_own = match (tag.get("data-type"), tag.get("data-bindgen-target")) {
                (None, None | Some("web")) => true,
                (Some("worker"), Some("web")) => false,
                _ => bail!("only data-type=\"worker\" with data-bindgen-target=\"web\" is supported"),
            };
            page.programs.push(Program {
                is_own,
                manifest: tag.need("href")?.to_owned(),
                bin: tag.need("data-bin")?.to_owned(),
                profile: tag.need("data-cargo-profile")?.to_owned(),
            });
            Ok(String::new())
        }
        "css" => {
            tag.allow(&[])?;
            let (source, _) = tag.paths()?;
            let is_first = page.styles.is_empty();
            page.styles.push(source);
            Ok(if is_first { format!("<link rel=\"stylesheet\" href=\"./{STYLE}\">") } else { String::new() })
        }
        "icon" => {
            let kept = ["type", "media", "sizes"];
            tag.allow(&kept)?;
            let (source, target) = tag.paths()?;
            let attributes: Vec<_> = tag
                .attributes
                .iter()
                .filter(|(name, _)| kept.contains(name))
                .map(|(name, value)| format!(" {name}=\"{value}\""))
                .collect();
            let seen = format!("<link rel=\"{rel}\" href=\"./{target}\"{}>", attributes.concat());
            page.assets.push(Asset::File { source, target });
            Ok(seen)
        }
        "copy-file" => {
            tag.allow(&["data-target-path"])?;
            let (source, target) = tag.paths()?;
            page.assets.push(Asset::File { source, target });
            Ok(String::new())
        }
        "copy-dir" => {
            tag.allow(&["data-target-path"])?;
            let (source, target) = tag.paths()?;
            // For Trunk, the target path of a folder is the folder itself and not its parent.
            let target = tag.get("data-target-path").map_or(target, str::to_owned);
            page.assets.push(Asset::Folder { source, target });
            Ok(String::new())
        }
        _ => bail!(
            "rel=\"{rel}\" is not supported; xtask/src/page.rs knows rust, css, icon, copy-file and copy-dir"
        ),
    }
}

/// The opening tags of `html` in order, without comments and closing tags.
fn tags(html: &str) -> Result<Vec<Tag<'_>>> {
    let mut tags = Vec::new();
    let mut from = 0;
    while let Some(start) = html[from..].find('<').map(|at| from + at) {
        let rest = &html[start + 1..];
        if rest.starts_with("!--") {
            let end = rest.find("-->").context("index.html: a comment does not end")?;
            from = start + 1 + end + 3;
        } else if rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            let tag = tag(html, start)?;
            from = tag.end;
            tags.push(tag);
        } else {
            from = start + 1;
        }
    }
    Ok(tags)
}

/// The tag that opens at `start`.
fn tag(html: &str, start: usize) -> Result<Tag<'_>> {
    let is_end = |letter: char| letter.is_ascii_whitespace() || letter == '>' || letter == '/';
    let name_end = html[start + 1..].find(is_end).map(|at| start + 1 + at);
    let mut at = name_end.context("index.html: a tag does not end")?;
    let name = &html[start + 1..at];
    let mut attributes = Vec::new();
    loop {
        let skipped = |letter: char| letter.is_ascii_whitespace() || letter == '/';
        at = html.len() - html[at..].trim_start_matches(skipped).len();
        let rest = &html[at..];
        if rest.starts_with('>') {
            return Ok(Tag { start, end: at + 1, name, attributes });
        }
        let key_end = rest
            .find(|letter: char| is_end(letter) || letter == '=')
            .with_context(|| format!("index.html: <{name} does not end"))?;
        ensure!(key_end > 0, "index.html: a stray `=` in <{name}");
        at += key_end;
        let value = match html[at..].strip_prefix('=') {
            None => "",
            Some(value) => {
                let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote));
                let quote = quote.with_context(|| format!("index.html: a value in <{name} has no quotes"))?;
                let end = value[1..].find(quote);
                let end = end.with_context(|| format!("index.html: a value in <{name} does not end"))?;
                at += end + 3;
                &value[1..=end]
            }
        };
        attributes.push((&rest[..key_end], value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str =
        r#"<link data-trunk rel="rust" href="web/Cargo.toml" data-bin="page" data-cargo-profile="small">"#;

    fn file(source: &str, target: &str) -> Asset {
        Asset::File { source: source.to_owned(), target: target.to_owned() }
    }

    #[test]
    fn directives_become_what_trunk_makes_of_them() {
        let text = format!(
            r#"<!doctype html>
<html><head><!-- <link data-trunk rel="sass"> -->
{RUST}
<link data-trunk rel='css' href='web/style/base.css' />
<link data-trunk rel="css" href="web/style/lab.css">
<link data-trunk rel="icon" href="web/icon.svg" type="image/svg+xml">
<link data-trunk rel="copy-file" href="web/worker.js">
<link data-trunk rel="copy-file" href="a/run.gz" data-target-path="samples">
<link data-trunk rel="copy-dir" href="web/fonts">
<link data-trunk rel="copy-dir" href="web/runs" data-target-path="samples/runs">
<meta content="a > b"><script type="module" src="./boot.js"></script>
</head><body>1 < 2</body></html>"#
        );
        let page = Page::read(&text).unwrap();
        let lines: Vec<_> = page.html.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines,
            [
                "<!doctype html>",
                r#"<html><head><!-- <link data-trunk rel="sass"> -->"#,
                r#"<link rel="stylesheet" href="./style.css">"#,
                r#"<link rel="icon" href="./icon.svg" type="image/svg+xml">"#,
                r#"<meta content="a > b"><script type="module" src="./boot.js"></script>"#,
                "</head><body>1 < 2</body></html>",
            ]
        );
        let (manifest, bin, profile) = ("web/Cargo.toml".to_owned(), "page".to_owned(), "small".to_owned());
        assert_eq!(page.programs, [Program { is_own: true, manifest, bin, profile }]);
        assert_eq!(page.styles, ["web/style/base.css", "web/style/lab.css"]);
        let folder =
            |source: &str, target: &str| Asset::Folder { source: source.into(), target: target.into() };
        assert_eq!(
            page.assets,
            [
                file("web/icon.svg", "icon.svg"),
                file("web/worker.js", "worker.js"),
                file("a/run.gz", "samples/run.gz"),
                folder("web/fonts", "fonts"),
                folder("web/runs", "samples/runs"),
            ]
        );
    }

    #[test]
    fn a_program_for_workers_stands_behind_the_page() {
        let worker = r#"<link data-trunk rel="rust" href="gpu/Cargo.toml" data-bin="gpu" data-cargo-profile="small" data-type="worker" data-bindgen-target="web">"#;
        let page = Page::read(&format!("{worker}{RUST}")).unwrap();
        let bins: Vec<_> = page.programs.iter().map(|program| program.bin.as_str()).collect();
        assert_eq!(bins, ["page", "gpu"]);
        assert!(page.html.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_reported() {
        let cases = [
            (r#"<link data-trunk rel="sass" href="a.scss">"#, "rel=\"sass\" is not supported"),
            (r#"<script data-trunk src="a.js"></script>"#, "only <link data-trunk>"),
            (r#"<link data-trunk href="a.css">"#, "`rel` is missing"),
            (r#"<link data-trunk rel="css">"#, "`href` is missing"),
            (r#"<link data-trunk rel="css" href="a.css" data-inline>"#, "`data-inline` is not supported"),
            (r#"<link data-trunk rel="copy-file" href="../a">"#, "not a plain path"),
            (r#"<link data-trunk rel="copy-file" href="/etc/passwd">"#, "not a plain path"),
            (r#"<link data-trunk rel="copy-dir" href="a" data-target-path="../b">"#, "not a plain path"),
            ("<link data-trunk rel=css>", "has no quotes"),
            ("<link data-trunk rel=\"css", "does not end"),
            ("<link data-trunk", "does not end"),
            ("<!-- never closed", "does not end"),
            ("<link =\"x\">", "stray"),
            (RUST, "exactly one"),
            (r#"<link data-trunk rel="rust" data-type="worker" href="a">"#, "data-bindgen-target"),
        ];
        for (text, wanted) in cases {
            let error = format!("{:#}", Page::read(&format!("{RUST}{text}")).unwrap_err());
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(Page::read("<html></html>").is_err());
    }
}
