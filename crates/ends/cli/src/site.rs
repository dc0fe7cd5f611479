//! `blockyard site`: a course for any web server.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use blockyard_figure::escaped;
use blockyard_lessons::{Lesson, PARTS, lessons};
use blockyard_pytorch::MemoryFile;
use blockyard_serve::{SERVICE_WORKER, service_worker};
use clap::Args;

use crate::output;
use crate::page::{BuiltPage, PageOptions, percent_encoded, workload_with_device};
use crate::snapshot::open_file;

#[derive(Debug, Args)]
pub(crate) struct SiteOptions {
    /// The folder to write: a new one, an empty one, or one that this command wrote before.
    pub(crate) out: PathBuf,
    /// Lessons, recordings, snapshots, workloads' texts and Python programs of your own, in the order of the
    /// index.
    pub(crate) files: Vec<PathBuf>,
    /// The heading of the index.
    #[arg(long, value_name = "TEXT", default_value = "GPU memory in PyTorch")]
    pub(crate) title: String,
    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// The script of the page that lets the browser keep the site.
const OFFLINE: &str = "offline.js";
/// The beginning of the service worker of a site, in every version. It shows that this command wrote a
/// folder.
const MARK: &str = "// Written by `blockyard site`.";
/// The index of the course.
const INDEX: &str = "course.html";
/// The folder in which the page looks for files beside it.
const BESIDE: &str = "open";

/// A file of the reader's own.
struct OwnFile {
    /// The file's name, without folders.
    name: String,
    bytes: Vec<u8>,
    /// The file's name in the index.
    title: String,
    /// The file's text in the index.
    about: String,
}

pub(crate) fn site(options: &SiteOptions) -> anyhow::Result<ExitCode> {
    let page = BuiltPage::find(options.page.page.as_deref())?;
    let own = options.files.iter().map(|path| read_own(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut names = BTreeSet::new();
    if let Some(twice) = own.iter().find(|file| !names.insert(file.name.clone())) {
        bail!("two files have the name {}: the files of a site need different names", twice.name);
    }
    let out = &options.out;
    ensure_ours(out)?;
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    add_folder(&mut files, page.folder(), "")?;
    files.retain(|(name, _)| ![SERVICE_WORKER, INDEX].contains(&name.as_str()) && !name.starts_with("open/"));
    files.push((INDEX.to_owned(), index(&options.title, &own)?.into_bytes()));
    files.extend(own.into_iter().map(|file| (format!("{BESIDE}/{}", file.name), file.bytes)));
    files.sort_by(|one, other| one.0.cmp(&other.0));
    let kept = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    let worker = service_worker(MARK, kept);
    files.push((SERVICE_WORKER.to_owned(), worker.into_bytes()));
    clear(out)?;
    let mut total = 0;
    for (name, bytes) in &files {
        let path = out.join(name);
        let folder = path.parent().unwrap_or(out);
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        total += bytes.len();
    }
    let mut printed = output::stdout();
    output::line(
        &mut printed,
        &format!(
            "{}: {} files, {} MB. {INDEX} is the index. Put the folder on a web server; to look at it \
             here:\n  python3 -m http.server -d {}",
            out.display(),
            files.len(),
            total.div_ceil(1_000_000),
            out.display()
        ),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a file of the reader's and finds its kind. A file that the page could not open is an error.
fn read_own(path: &Path) -> anyhow::Result<OwnFile> {
    let shown = path.display().to_string();
    let bytes = fs::read(path).with_context(|| shown.clone())?;
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .with_context(|| format!("{shown}: the name is not UTF-8"))?;
    let own = |title: String, about: &str, bytes| OwnFile {
        name: name.to_owned(),
        bytes,
        title,
        about: about.to_owned(),
    };
    match open_file(&bytes).with_context(|| shown.clone())? {
        MemoryFile::Snapshot(_) => Ok(own(name.to_owned(), "a memory snapshot", bytes)),
        MemoryFile::Recording(_) => Ok(own(name.to_owned(), "a recording", bytes)),
        MemoryFile::Text(text) if text.trim_start().starts_with("---") => {
            let text = crate::lesson::with_requests(&shown, text)?;
            let lesson = Lesson::parse(&text).and_then(|lesson| lesson.play().map(|_| lesson));
            let lesson = lesson.map_err(|error| anyhow::anyhow!("{shown}: {error}"))?;
            let (title, about) = (lesson.title().to_owned(), said_of(&lesson));
            Ok(own(title, &about, text.into_bytes()))
        }
        MemoryFile::Text(_) if path.extension().is_some_and(|end| end == "py") => {
            Ok(own(name.to_owned(), "a program", bytes))
        }
        MemoryFile::Text(text) => {
            let text = workload_with_device(&shown, &text)?;
            Ok(own(name.to_owned(), "a workload", text.into_bytes()))
        }
    }
}

/// The index: files of the reader's own first, then the lessons that come with the page.
fn index(title: &str, own: &[OwnFile]) -> anyhow::Result<String> {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; font-src 'self'; connect-src 'self'; worker-src 'self'; \
         base-uri 'none'; form-action 'none'\">\n<title>{title}</title>\n<style>\n{style}</style>\n<script type=\"module\" \
         src=\"./{OFFLINE}\"></script>\n<main>\n<h1>{title}</h1>\n",
        title = escaped(title),
        style = include_str!("site/course.css"),
    );
    if !own.is_empty() {
        html.push_str("<h2>This course</h2>\n<ol>\n");
        for file in own {
            let address = format!("./#open={}", percent_encoded(&file.name));
            item(&mut html, &address, &file.title, &file.about)?;
        }
        html.push_str("</ol>\n");
    }
    let known = lessons();
    for part in &PARTS {
        writeln!(html, "<h2>{}</h2>\n<ul>", escaped(part.title))?;
        for named in part.lessons {
            let lesson = known.iter().find(|file| file.id == named.id).map(|file| Lesson::parse(file.text));
            let about = lesson.and_then(Result::ok).map_or_else(String::new, |lesson| said_of(&lesson));
            item(&mut html, &format!("./#lesson={}", named.id), named.title, &about)?;
        }
        html.push_str("</ul>\n");
    }
    html.push_str(
        "<h2>Tools</h2>\n<ul>\n<li><a href=\"./#workbench\">Workbench</a></li>\n<li><a href=\"./#python\">PyTorch programs</a></li>\n\
         <li><a href=\"./\">Blockyard</a></li>\n</ul>\n</main>\n</html>\n",
    );
    Ok(html)
}

/// A lesson's text in the index: what the lesson teaches, and how long it takes.
fn said_of(lesson: &Lesson) -> String {
    let minutes = lesson.minutes().map_or_else(String::new, |minutes| format!(" {minutes} min"));
    format!("{}{minutes}", lesson.summary())
}

fn item(html: &mut String, address: &str, title: &str, about: &str) -> std::fmt::Result {
    writeln!(
        html,
        "<li><a href=\"{}\">{}</a> <span class=\"about\">{}</span></li>",
        escaped(address),
        escaped(title),
        escaped(about)
    )
}

/// Refuses a folder with files that this command did not write.
fn ensure_ours(out: &Path) -> anyhow::Result<()> {
    if !out.exists() {
        return Ok(());
    }
    let mut entries = fs::read_dir(out).with_context(|| out.display().to_string())?;
    let is_ours = || {
        let worker = fs::read_to_string(out.join(SERVICE_WORKER)).unwrap_or_default();
        worker.starts_with(MARK)
    };
    ensure!(
        entries.next().is_none() || is_ours(),
        "{} has files of another origin: name a new folder",
        out.display()
    );
    Ok(())
}

/// Empties a folder that this command wrote.
fn clear(out: &Path) -> anyhow::Result<()> {
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| out.display().to_string())?;
    }
    fs::create_dir_all(out).with_context(|| out.display().to_string())
}

/// Adds the files of a folder, with those of folders in it.
fn add_folder(files: &mut Vec<(String, Vec<u8>)>, folder: &Path, under: &str) -> anyhow::Result<()> {
    let shown = || folder.display().to_string();
    for entry in fs::read_dir(folder).with_context(shown)? {
        let path: PathBuf = entry.with_context(shown)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let name = if under.is_empty() { name.to_owned() } else { format!("{under}/{name}") };
        if path.is_dir() {
            add_folder(files, &path, &name)?;
        } else {
            files.push((name, fs::read(&path).with_context(|| path.display().to_string())?));
        }
    }
    Ok(())
}
