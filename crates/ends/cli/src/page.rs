//! The page with a file opened in it: as one HTML file that needs nothing else, or served on this machine.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blockyard_figure::escaped;
use blockyard_pytorch::MemoryFile;
use blockyard_pytorch::snapshot::MemoryName;
use blockyard_serve::{Beside, Port, Server};
use blockyard_workload::Workload;
use blockyard_workload::edit::with_header;
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::output;
use crate::snapshot::open_file;

/// Where the built page is.
#[derive(Debug, Args)]
pub(crate) struct PageOptions {
    /// The folder of the built page, as `cargo xtask build` makes it; without it, `BLOCKYARD_PAGE` or beside
    /// the program.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) page: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct OpenOptions {
    /// A snapshot, a recording, or a workload's text.
    pub(crate) file: PathBuf,
    /// The port on 127.0.0.1; without it, any that is free.
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Only print the address.
    #[arg(long)]
    pub(crate) no_browser: bool,
    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// The files of a page that is one file, without the parts of its program ([`LATER`]). The module for WebGPU
/// and the samples are left out, because such a page shows one file.
const PARTS: [&str; 6] = [
    "boot.js",
    "blockyard-web.js",
    "blockyard-web_bg.wasm",
    "worker.js",
    "blockyard-worker.js",
    "blockyard-worker_bg.wasm",
];

/// The files that only the whole page needs, and not the figure with its timeline.
const QUESTIONS: [&str; 4] = [
    "blockyard-questions.js",
    "blockyard-questions_bg.wasm",
    "blockyard-report.js",
    "blockyard-report_bg.wasm",
];

/// How the names of the parts of the page's program begin, which are fetched when they are shown.
const LATER: &str = "blockyard-web-";
/// The script that fetches the parts, without which the program does not start.
const LATER_SCRIPT: &str = "blockyard-web-parts.js";

/// The script that gives the page its files out of the page itself.
const UNPACK: &str = include_str!("page/unpack.js");

/// The content security policy of such a page: it fetches nothing and sends nothing.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' blob: data: 'wasm-unsafe-eval'; style-src 'unsafe-inline'; \
                      img-src data: blob:; font-src data:; worker-src data:; connect-src blob:; base-uri 'none'; form-action 'none'";

/// The height of a frame in pixels: that of the stage with its timeline, as in the page's own texts for
/// frames, and one more line.
const FRAME_PX: u32 = 480;

/// The most packed bytes of a file in a page: browsers have no texts above half a gigabyte.
const MAX_PACKED_BYTES: usize = 256 << 20;

/// The built page: a folder as `cargo xtask build` makes it.
#[derive(Clone, Debug)]
pub struct BuiltPage {
    folder: PathBuf,
}

/// A file that the page opens when it starts.
#[derive(Clone, Debug)]
pub struct PageFile {
    name: String,
    /// The content as the page reads it, or packed with gzip.
    bytes: Vec<u8>,
    /// Whether `bytes` are packed for the transport alone.
    is_unpacked_by_script: bool,
}

impl BuiltPage {
    /// The page in `folder`; without one, in the folder that `BLOCKYARD_PAGE` names, or beside the program,
    /// or in the repository in which the program was built.
    ///
    /// # Errors
    ///
    /// If no page is found; the message says how to get one.
    pub fn find(folder: Option<&Path>) -> anyhow::Result<Self> {
        let named =
            folder.map(Path::to_owned).or_else(|| std::env::var_os("BLOCKYARD_PAGE").map(PathBuf::from));
        if let Some(folder) = named {
            return match missing_part(&folder) {
                None => Ok(Self { folder }),
                Some(part) => bail!("{} has no built page: the file {part} is missing", folder.display()),
            };
        }
        let program = std::env::current_exe().unwrap_or_default();
        let beside = program
            .ancestors()
            .skip(1)
            .flat_map(|folder| ["page", "share/blockyard/page", "dist"].map(|place| folder.join(place)));
        let found = beside.into_iter().find(|folder| missing_part(folder).is_none());
        found.map(|folder| Self { folder }).context(
            "an HTML file is made from the built page, which was not found: run `cargo xtask build` in the \
             repository, or name the page's folder with --page or BLOCKYARD_PAGE; the Python package \
             contains the page",
        )
    }

    /// The folder with the files of the page.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn read(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        let path = self.folder.join(name);
        std::fs::read(&path).with_context(|| path.display().to_string())
    }

    /// The files of a page that is one file, sorted within their kind: those of the figure with its timeline
    /// (`is_embedded`), or all.
    fn parts(&self, is_embedded: bool) -> anyhow::Result<Vec<String>> {
        let folder = || self.folder.display().to_string();
        let mut later = Vec::new();
        for entry in std::fs::read_dir(&self.folder).with_context(folder)? {
            let name = entry.with_context(folder)?.file_name();
            let is_needed = |name: &&str| name.starts_with(LATER) && (!is_embedded || *name == LATER_SCRIPT);
            later.extend(name.to_str().filter(is_needed).map(str::to_owned));
        }
        later.sort();
        let questions = if is_embedded { &[][..] } else { &QUESTIONS };
        Ok(PARTS.iter().chain(questions).map(|part| (*part).to_owned()).chain(later).collect())
    }
}

/// The first part of the page that the folder does not have.
fn missing_part(folder: &Path) -> Option<&'static str> {
    PARTS.iter().chain(&QUESTIONS).chain(&["style.css"]).find(|part| !folder.join(part).is_file()).copied()
}

impl PageFile {
    /// The content of a file: a snapshot (all devices, or only `device`), a recording, or a workload's text.
    ///
    /// # Errors
    ///
    /// If the page could not open the file, or the file is too large for a page.
    pub fn new(name: &str, bytes: Vec<u8>, device: Option<MemoryName>) -> anyhow::Result<Self> {
        let name = name.rsplit('/').next().unwrap_or(name).to_owned();
        let opened = open_file(&bytes).with_context(|| name.clone())?;
        let is_unpacked_by_script = matches!(opened, MemoryFile::Text(_));
        let bytes = match (opened, device) {
            (MemoryFile::Snapshot(mut file), Some(device)) => {
                file.retain(device);
                if file.memories().next().is_none() {
                    bail!("the snapshot has nothing about {device}");
                }
                let mut one = Vec::new();
                file.write_pickle(&mut one)?;
                packed(&one)?
            }
            (MemoryFile::Text(text), _) => packed(workload_with_device(&name, &text)?.as_bytes())?,
            _ if is_packed(&bytes) => bytes,
            _ => packed(&bytes)?,
        };
        if bytes.len() > MAX_PACKED_BYTES {
            bail!(
                "{name} is too large for one page, {} MB packed; `blockyard open` shows it",
                bytes.len() / 1_000_000
            );
        }
        Ok(Self { name, bytes, is_unpacked_by_script })
    }

    /// How many bytes the file takes in a page, packed.
    pub fn packed_len(&self) -> usize {
        self.bytes.len()
    }
}

/// A workload's text with a line for its device: without this line, the page would use the device of the
/// document that it showed before.
pub(crate) fn workload_with_device(name: &str, text: &str) -> anyhow::Result<String> {
    let workload = Workload::parse(text).map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
    let capacity = workload.capacity().unwrap_or(Workload::DEFAULT_CAPACITY).get();
    Ok(with_header(text, &capacity.to_string(), workload.conf().unwrap_or_default()))
}

fn is_packed(bytes: &[u8]) -> bool {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    const ZIP: &[u8] = b"PK\x03\x04";
    [GZIP, ZSTD, ZIP].iter().any(|magic| bytes.starts_with(magic))
}

fn packed(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// The page with the file opened in it, as one HTML file that opens without a network. `is_embedded` is the
/// page as other pages show it in a frame: the figure with its timeline and nothing around.
///
/// # Errors
///
/// If a file of the page cannot be read.
pub fn one_page(page: &BuiltPage, file: &PageFile, is_embedded: bool) -> anyhow::Result<String> {
    let title = escaped(&file.name);
    let place = if is_embedded { "?embed=stage" } else { "" };
    let address = format!("{place}#open={}", percent_encoded(&file.name));
    let style = String::from_utf8(page.read("style.css")?).context("style.css")?;
    let style = crate::typeface::with_fonts_inside(&style);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\" data-address=\"{address}\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" \
         content=\"light dark\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title} · Blockyard</title>\n<style>{style}</style>\n<div id=\"app\"><p class=\"loading\">Opening {title} \
         …</p></div>\n<noscript><p class=\"loading\">Blockyard needs JavaScript and WebAssembly.</p></noscript>\n"
    );
    for part in page.parts(is_embedded)? {
        add_part(&mut html, &part, &packed(&page.read(&part)?)?, true);
    }
    add_part(&mut html, &format!("open/{}", file.name), &file.bytes, file.is_unpacked_by_script);
    let _ = write!(html, "<script type=\"module\">\n{UNPACK}</script>\n</html>\n");
    Ok(html)
}

/// [`one_page`] in a frame for another page, such as a notebook: the figure with its timeline. The frame may
/// run scripts and nothing else: it sees nothing of the page around.
///
/// # Errors
///
/// The errors of [`one_page`].
pub fn frame(page: &BuiltPage, file: &PageFile) -> anyhow::Result<String> {
    let content = escaped(&one_page(page, file, true)?);
    Ok(format!(
        "<iframe title=\"{}\" sandbox=\"allow-scripts\" style=\"width:100%;height:{FRAME_PX}px;border:0\" \
         srcdoc=\"{content}\"></iframe>",
        escaped(&file.name)
    ))
}

/// Adds a part to the page: a script element of a type that no browser runs contains the bytes.
fn add_part(html: &mut String, name: &str, bytes: &[u8], is_unpacked_by_script: bool) {
    let packed = if is_unpacked_by_script { " data-packed" } else { "" };
    let _ = write!(html, "<script type=\"text/plain\" data-file=\"{}\"{packed}>", escaped(name));
    STANDARD.encode_string(bytes, html);
    html.push_str("</script>\n");
}

/// The characters that are escaped in the value of a key of an address: all but letters, digits, `-`, `_` and
/// `.`.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The text with the escapes of a value of a key in an address.
pub(crate) fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

/// `blockyard open FILE`: serves the page and the file on 127.0.0.1 until Ctrl-C.
pub(crate) fn open(options: &OpenOptions) -> anyhow::Result<ExitCode> {
    let path = &options.file;
    let found = path.canonicalize().with_context(|| path.display().to_string())?;
    if !found.is_file() {
        bail!("{}: not a file", path.display());
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let of_file = name.clone();
    let beside = move |asked: &str| (asked == of_file).then(|| Beside::File(found.clone()));
    let (server, url) = serve(options.page.page.as_deref(), options.port, &name, beside)?;
    let mut out = output::stdout();
    output::line(&mut out, &format!("{name} is open at {url} (Ctrl-C ends it)"))?;
    out.flush()?;
    drop(out);
    if !options.no_browser {
        show(&url)?;
    }
    server.wait();
    Ok(ExitCode::SUCCESS)
}

/// Serves the page in `folder`, or that which is found without one, and what is beside it. Returns the address at
/// which the page opens `name` of `beside`.
pub(crate) fn serve(
    folder: Option<&Path>,
    port: u16,
    name: &str,
    beside: impl Fn(&str) -> Option<Beside> + Send + Sync + 'static,
) -> anyhow::Result<(Server, String)> {
    let page = BuiltPage::find(folder)?;
    let server = Server::start_with(&page.folder, Port::take(port)?, beside)?;
    // With `?once` the browser does not keep the page after this file.
    let url = format!("{}?once#open={}", server.url(), percent_encoded(name));
    Ok((server, url))
}

/// Shows the address in the reader's browser.
pub(crate) fn show(url: &str) -> anyhow::Result<()> {
    if let Err(error) = open::that_detached(url) {
        output::warn(&format!("no browser could be started: {error}"))?;
    }
    Ok(())
}
