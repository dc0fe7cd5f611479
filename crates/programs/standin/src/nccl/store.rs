//! The store in which the ranks of a dry run find each other: a client of PyTorch's `TCPStore`, whose server
//! the command is.

use std::env;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Mutex, OnceLock, PoisonError};

use blockyard_hooks::variables;

/// The number that a client of `TCPStore` sends first.
const MAGIC: u32 = 0x3C85_F7CE;
const VALIDATE: u8 = 0;
const SET: u8 = 1;
const WAIT: u8 = 6;
const DELETE_KEY: u8 = 8;
const MULTI_GET: u8 = 10;

/// A connection to the store. The process has one: a call waits here only where NCCL itself would wait.
pub(super) struct StoreClient {
    stream: TcpStream,
}

impl StoreClient {
    fn connect() -> Option<Self> {
        let address = env::var(variables::STORE).ok().filter(|address| !address.is_empty())?;
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        let mut store = Self { stream };
        let mut hello = vec![VALIDATE];
        hello.extend(MAGIC.to_ne_bytes());
        store.stream.write_all(&hello).ok()?;
        Some(store)
    }

    /// Sets the value of a key.
    pub(super) fn set(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        let mut query = vec![SET];
        add(&mut query, key.as_bytes());
        add(&mut query, value);
        self.stream.write_all(&query)
    }

    /// The values of these keys, once all are set.
    pub(super) fn wait(&mut self, keys: &[String]) -> io::Result<Vec<Vec<u8>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.stream.write_all(&query(WAIT, keys))?;
        self.stream.read_exact(&mut [0])?;
        self.stream.write_all(&query(MULTI_GET, keys))?;
        keys.iter().map(|_key| self.bytes()).collect()
    }

    /// Removes a value that everybody has read.
    pub(super) fn remove(&mut self, key: &str) -> io::Result<()> {
        let mut query = vec![DELETE_KEY];
        add(&mut query, key.as_bytes());
        self.stream.write_all(&query)?;
        self.stream.read_exact(&mut [0; 8])
    }

    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut count = [0; 8];
        self.stream.read_exact(&mut count)?;
        let count = u64::from_ne_bytes(count);
        let mut bytes = Vec::new();
        (&mut self.stream).take(count).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == count { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

fn query(kind: u8, keys: &[String]) -> Vec<u8> {
    let mut query = vec![kind];
    query.extend((keys.len() as u64).to_ne_bytes());
    for key in keys {
        add(&mut query, key.as_bytes());
    }
    query
}

fn add(query: &mut Vec<u8>, bytes: &[u8]) {
    query.extend((bytes.len() as u64).to_ne_bytes());
    query.extend(bytes);
}

/// Acts with the store; `None` where no store exists, or where the connection was lost.
pub(super) fn with_store<T>(act: impl FnOnce(&mut StoreClient) -> io::Result<T>) -> Option<T> {
    static STORE: OnceLock<Mutex<Option<StoreClient>>> = OnceLock::new();
    let mut slot = STORE
        .get_or_init(|| Mutex::new(StoreClient::connect()))
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let result = act(slot.as_mut()?);
    if result.is_err() {
        // After an error, the rest of an answer may still come, so the connection cannot be used again.
        *slot = None;
    }
    result.ok()
}
