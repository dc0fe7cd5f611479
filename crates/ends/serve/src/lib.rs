//! A static server of one folder on 127.0.0.1, for `cargo xtask play`, `blockyard open` and the end-to-end
//! tests.
//!
//! The server answers `GET` and `HEAD` for plain files below the folder and nothing else; `/` is
//! `index.html`. A `.gz` file is a plain file and not a content encoding: the page wants the compressed
//! bytes. Nothing is cached, so that a reload after a build shows the build. Files from other folders, and bytes
//! that are made for a request, may be served too, as `/open/NAME`; only requests that name this machine as
//! their host get them. The server does not know what the files are about.
//!
//! The server is ours because the command `blockyard open` contains it, so that no other program is needed,
//! and because the files of the reader must not be given to other machines or other pages.
//!
//! # Decisions
//!
//! **One service worker keeps the page in the reader's browser** ([`service_worker`], a list of files before
//! a script). `cargo xtask` writes it beside the page, and `blockyard site` beside the page and a teacher's
//! files. If any file changes, the worker has another version, which replaces the old one. With a network,
//! all files come from the network, so that a reload shows a new build; without a network, or if a response
//! takes longer than three seconds, they come from the browser.

mod file;
mod offline;

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use percent_encoding::percent_decode_str;
use thiserror::Error;
use tiny_http::{Method, Request};

pub use file::{content_type, locate};
pub use offline::{SERVICE_WORKER, service_worker};

/// How many requests are answered at the same time, so that one slow reader does not delay the others.
const WORKERS: usize = 4;

/// Why the server did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Another program listens on the port.
    #[error("port {port} on 127.0.0.1 is taken: stop what listens there, or choose another with --port")]
    PortTaken {
        /// The port asked for.
        port: u16,
    },
    /// The folder to serve is missing or unreadable.
    #[error("cannot serve {}", path.display())]
    Folder {
        /// The folder asked for.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The system refused the socket for another reason.
    #[error("cannot listen on 127.0.0.1:{port}")]
    Listen {
        /// The port asked for.
        port: u16,
        /// The error of the system.
        source: io::Error,
    },
}

/// A port of 127.0.0.1 that is ours, before there is anything to serve.
///
/// A caller takes the port before it builds the page, so that a taken port is an error at once and not after
/// minutes.
#[derive(Debug)]
pub struct Port {
    listener: TcpListener,
    address: SocketAddr,
}

impl Port {
    /// Takes `port`; 0 lets the system choose a free one.
    ///
    /// # Errors
    ///
    /// [`ServeError::PortTaken`] if another program has the port, [`ServeError::Listen`] if the system
    /// refuses it.
    pub fn take(port: u16) -> Result<Self, ServeError> {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .and_then(|listener| listener.local_addr().map(|address| Self { listener, address }));
        taken.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ServeError::PortTaken { port },
            _ => ServeError::Listen { port, source },
        })
    }
}

/// What is served as `/open/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beside {
    /// A file of any folder.
    File(PathBuf),
    /// Bytes that were made for this request.
    Bytes(Vec<u8>),
}

/// Finds by its name what is served as `/open/NAME`.
type FindBeside = dyn Fn(&str) -> Option<Beside> + Send + Sync;

/// A running server, which stops when it is dropped.
pub struct Server {
    http: Arc<tiny_http::Server>,
    address: SocketAddr,
    workers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Serves the files below `folder` on `port` until the server is dropped.
    ///
    /// # Errors
    ///
    /// [`ServeError::Folder`] where the folder is missing, [`ServeError::Listen`] where the system refuses
    /// the socket.
    pub fn start(folder: &Path, port: Port) -> Result<Self, ServeError> {
        Self::start_with(folder, port, |_| None)
    }

    /// Serves the files below `folder`, and what `beside` finds by a name, on `port` until the server is dropped.
    ///
    /// # Errors
    ///
    /// The errors of [`Server::start`].
    pub fn start_with(
        folder: &Path,
        port: Port,
        beside: impl Fn(&str) -> Option<Beside> + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        let beside: Arc<FindBeside> = Arc::new(beside);
        let folder =
            folder.canonicalize().map_err(|source| ServeError::Folder { path: folder.to_owned(), source })?;
        let Port { listener, address } = port;
        let http = tiny_http::Server::from_listener(listener, None)
            .map_err(|error| ServeError::Listen { port: address.port(), source: io::Error::other(error) })?;
        let http = Arc::new(http);
        let workers = (0..WORKERS)
            .map(|_| {
                let (http, folder, beside) = (Arc::clone(&http), folder.clone(), Arc::clone(&beside));
                thread::spawn(move || {
                    while let Ok(request) = http.recv() {
                        answer(request, &folder, &*beside);
                    }
                })
            })
            .collect();
        Ok(Self { http, address, workers })
    }

    /// The address of the page: `http://127.0.0.1:8080/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        for worker in self.workers.drain(..) {
            // A worker that panicked has said so on standard error; the others still serve.
            let _ = worker.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for _ in &self.workers {
            self.http.unblock();
        }
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

fn answer(request: Request, folder: &Path, beside: &FindBeside) {
    let is_read = matches!(request.method(), Method::Get | Method::Head);
    let found = if is_read {
        find_beside(beside, &request).or_else(|| locate(folder, request.url()).map(Beside::File))
    } else {
        None
    };
    // An error means that the reader closed the connection, which is not the server's error.
    let _ = match found {
        Some(Beside::Bytes(bytes)) => {
            let length = bytes.len() as u64;
            respond(request, "200 OK", "application/octet-stream", length, &mut bytes.as_slice())
        }
        Some(Beside::File(path)) => match opened(&path) {
            Some((length, mut file)) => respond(request, "200 OK", content_type(&path), length, &mut file),
            None => respond_text(request, "404 Not Found", "not found"),
        },
        None if is_read => respond_text(request, "404 Not Found", "not found"),
        None => respond_text(request, "405 Method Not Allowed", "only GET and HEAD are answered"),
    };
}

/// A file with its length.
fn opened(path: &Path) -> Option<(u64, File)> {
    let file = File::open(path).ok()?;
    Some((file.metadata().ok()?.len(), file))
}

fn respond_text(request: Request, status: &str, text: &str) -> io::Result<()> {
    respond(request, status, "text/plain; charset=utf-8", text.len() as u64, &mut text.as_bytes())
}

/// Writes a response after which the connection ends.
///
/// `tiny_http` has no option for this. It gives a new connection to a thread that waits, also where another
/// connection that came at the same time takes that thread: the second one then waits until a browser closes
/// one of its other connections, which it keeps open for a minute.
fn respond(request: Request, status: &str, kind: &str, length: u64, body: &mut dyn Read) -> io::Result<()> {
    let has_body = *request.method() != Method::Head;
    let mut out = request.into_writer();
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )?;
    if has_body {
        io::copy(&mut body.take(length), &mut out)?;
    }
    out.flush()
}

/// What is requested of `beside`; `None` if the request is for nothing there.
///
/// The page of another site may give its own name the address of this machine; a request under such a name
/// gets nothing of the reader's.
fn find_beside(beside: &FindBeside, request: &Request) -> Option<Beside> {
    let name = request.url().split(['?', '#']).next()?.strip_prefix("/open/")?;
    let name = percent_decode_str(name).decode_utf8().ok()?;
    let mut hosts = request.headers().iter().filter(|header| header.field.equiv("Host")).peekable();
    hosts.peek()?;
    let is_this_machine = hosts.all(|header| {
        let host = header.value.as_str();
        ["127.0.0.1", "localhost"].contains(&host.rsplit_once(':').map_or(host, |(name, _)| name))
    });
    if is_this_machine { beside(&name) } else { None }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn serve() -> (Server, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("index.html"), "<!doctype html>").unwrap();
        std::fs::write(folder.path().join("run.jsonl.gz"), [0x1f, 0x8b, 0]).unwrap();
        (Server::start(folder.path(), Port::take(0).unwrap()).unwrap(), folder)
    }

    #[test]
    fn the_root_is_the_index_and_nothing_is_cached() {
        let (server, _folder) = serve();
        let response = minreq::get(server.url()).send().unwrap();
        assert_eq!(response.as_str().unwrap(), "<!doctype html>");
        assert_eq!(response.headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(response.headers["cache-control"], "no-store");
    }

    #[test]
    fn a_gzip_file_arrives_as_it_is() {
        let (server, _folder) = serve();
        let response = minreq::get(format!("{}run.jsonl.gz", server.url())).send().unwrap();
        assert_eq!(response.as_bytes(), [0x1f, 0x8b, 0]);
        assert_eq!(response.headers["content-type"], "application/gzip");
        assert_eq!(response.headers["content-length"], "3");
        assert!(!response.headers.contains_key("content-encoding"));
    }

    #[test]
    fn what_is_not_there_and_what_is_not_read_are_refused() {
        let (server, _folder) = serve();
        assert_eq!(minreq::get(format!("{}missing.js", server.url())).send().unwrap().status_code, 404);
        assert_eq!(minreq::post(server.url()).with_body("x").send().unwrap().status_code, 405);
    }

    #[test]
    fn a_file_beside_is_served_under_its_name_to_this_machine_only() {
        let (_, folder) = serve();
        let outside = tempfile::tempdir().unwrap();
        let path = outside.path().join("snapshot.pickle");
        std::fs::write(&path, "snapshot").unwrap();
        let beside = move |name: &str| match name {
            "rank 0.pickle" => Some(Beside::File(path.clone())),
            "made" => Some(Beside::Bytes(b"bytes".to_vec())),
            _ => None,
        };
        let server = Server::start_with(folder.path(), Port::take(0).unwrap(), beside).unwrap();
        let url = format!("{}open/rank%200.pickle", server.url());
        let response = minreq::get(&url).send().unwrap();
        assert_eq!((response.status_code, response.as_bytes()), (200, &b"snapshot"[..]));
        assert_eq!(response.headers["content-length"], "8");
        let foreign = minreq::get(&url).with_header("Host", "example.com:80").send().unwrap();
        assert_eq!(foreign.status_code, 404);
        let made = format!("{}open/made", server.url());
        assert_eq!(minreq::get(&made).send().unwrap().as_bytes(), b"bytes");
        assert_eq!(minreq::get(&made).with_header("Host", "example.com").send().unwrap().status_code, 404);
        assert_eq!(minreq::get(format!("{}open/other", server.url())).send().unwrap().status_code, 404);
    }

    #[test]
    fn a_taken_port_is_reported() {
        let port = Port::take(0).unwrap();
        let taken = Port::take(port.address.port());
        assert!(
            matches!(taken, Err(ServeError::PortTaken { port: number }) if number == port.address.port())
        );
    }

    #[test]
    fn a_missing_folder_is_reported() {
        let missing = Server::start(Path::new("no/such/folder"), Port::take(0).unwrap());
        assert!(matches!(missing, Err(ServeError::Folder { .. })));
    }
}
