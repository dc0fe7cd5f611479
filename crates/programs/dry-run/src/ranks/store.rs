//! The store in which the ranks of a program find each other: the server of PyTorch's `TCPStore`.
//!
//! Each process is a client, as under torchrun. A key that only a rank which does not run could set gets an
//! assumed value once every rank that runs waits: no other rank can set the key then.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::answers;

/// The number that a client of `TCPStore` sends first.
const MAGIC: u32 = 0x3C85_F7CE;
/// The time between two looks of a waiting query at its connection, whose client may stop waiting.
const PATIENCE: Duration = Duration::from_millis(20);
/// The most bytes of a key or a value.
const MAX_BYTES: u64 = 1 << 30;

/// Queries, by PyTorch's numbers.
mod query {
    pub(super) const VALIDATE: u8 = 0;
    pub(super) const SET: u8 = 1;
    pub(super) const COMPARE_SET: u8 = 2;
    pub(super) const GET: u8 = 3;
    pub(super) const ADD: u8 = 4;
    pub(super) const CHECK: u8 = 5;
    pub(super) const WAIT: u8 = 6;
    pub(super) const COUNT_KEYS: u8 = 7;
    pub(super) const DELETE_KEY: u8 = 8;
    pub(super) const APPEND: u8 = 9;
    pub(super) const MULTI_GET: u8 = 10;
    pub(super) const MULTI_SET: u8 = 11;
    pub(super) const CANCEL_WAIT: u8 = 12;
    pub(super) const PING: u8 = 13;
}

/// What the store holds.
#[derive(Debug, Default)]
struct Contents {
    values: BTreeMap<String, Vec<u8>>,
    /// Keys whose values are answers for ranks that do not run.
    answered: BTreeSet<String>,
    /// The keys in `answered` that were read, except the store's own.
    read: BTreeSet<String>,
    /// The keys that each waiting connection waits for, by the connection's number.
    waiting: BTreeMap<u64, Vec<String>>,
    /// Ranks that run now.
    running: Vec<u32>,
    /// Whether the program has ranks that do not run.
    has_absent: bool,
    next_connection: u64,
    is_closed: bool,
}

impl Contents {
    fn has(&self, keys: &[String]) -> bool {
        keys.iter().all(|key| self.values.contains_key(key))
    }

    /// Answers for the ranks that do not run, if all ranks that run wait.
    fn answer(&mut self) {
        if !self.has_absent || self.running.is_empty() {
            return;
        }
        let is_waiting = |keys: &Vec<String>| !self.has(keys);
        if self.waiting.values().filter(|keys| is_waiting(keys)).count() < self.running.len() {
            return;
        }
        let missing: Vec<Vec<&String>> = self
            .waiting
            .values()
            .map(|keys| keys.iter().filter(|key| !self.values.contains_key(*key)).collect())
            .filter(|keys: &Vec<&String>| !keys.is_empty())
            .collect();
        // One connection at a time is answered: its next query may set the keys that the others wait for.
        let surest = |keys: &&Vec<&String>| {
            keys.iter().map(|key| answers::answer(key, &self.values, &self.running).1).max()
        };
        let Some(keys) = missing.iter().min_by_key(surest) else { return };
        let answers: Vec<(String, Vec<u8>)> = keys
            .iter()
            .map(|key| ((*key).clone(), answers::answer(key, &self.values, &self.running).0))
            .collect();
        for (key, value) in answers {
            self.answered.insert(key.clone());
            self.values.insert(key, value);
        }
    }

    fn get(&mut self, key: &str) -> Vec<u8> {
        if self.answered.contains(key) && !answers::is_handle(key) {
            self.read.insert(key.to_owned());
        }
        self.values.get(key).cloned().unwrap_or_default()
    }

    fn set(&mut self, key: String, value: Vec<u8>) {
        self.answered.remove(&key);
        self.values.insert(key, value);
    }

    fn add(&mut self, key: String, number: i64) -> i64 {
        let before = self.values.get(&key).and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
        let sum = number.wrapping_add(before.unwrap_or(0));
        self.set(key, sum.to_string().into_bytes());
        sum
    }

    fn compare_set(&mut self, key: String, expected: Vec<u8>, desired: Vec<u8>) -> Vec<u8> {
        match self.values.get(&key) {
            None if expected.is_empty() => {}
            None => return expected,
            Some(value) if *value == expected => {}
            Some(value) => return value.clone(),
        }
        self.set(key, desired.clone());
        desired
    }
}

/// The contents, which the threads of all connections share.
#[derive(Debug, Default)]
struct SharedContents {
    contents: Mutex<Contents>,
    /// Notified of each change of the contents.
    changed: Condvar,
}

impl SharedContents {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server, which ends when this value is dropped.
#[derive(Debug)]
pub struct StoreServer {
    port: u16,
    shared: Arc<SharedContents>,
}

impl StoreServer {
    /// Listens on this port of 127.0.0.1, or on a free port for `None`. Of `world` ranks, those in `ranks`
    /// run.
    ///
    /// # Errors
    ///
    /// A port that is taken.
    pub fn start(port: Option<u16>, ranks: &[u32], world: u32) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0)))?;
        let port = listener.local_addr()?.port();
        let contents = Contents {
            running: ranks.to_vec(),
            has_absent: ranks.len() < usize::try_from(world).unwrap_or(usize::MAX),
            ..Contents::default()
        };
        let shared = Arc::new(SharedContents { contents: Mutex::new(contents), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        thread::Builder::new().name("store".to_owned()).spawn(move || accept(&listener, &accepting))?;
        Ok(Self { port, shared })
    }

    /// The port of 127.0.0.1 that the server listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Notes that this rank's process ended: the server does not wait for the rank any more.
    pub fn leave(&self, rank: u32) {
        self.shared.lock().running.retain(|running| *running != rank);
        self.shared.changed.notify_all();
    }

    /// Keys that ranks which do not run would have set, and whose values were read.
    pub fn assumed(&self) -> Vec<String> {
        self.shared.lock().read.iter().cloned().collect()
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn accept(listener: &TcpListener, shared: &Arc<SharedContents>) {
    for stream in listener.incoming() {
        let mut contents = shared.lock();
        if contents.is_closed {
            return;
        }
        contents.next_connection += 1;
        let number = contents.next_connection;
        drop(contents);
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // A connection that no thread can serve is closed, which its client reports.
        let _ = thread::Builder::new().name("store".to_owned()).spawn(move || {
            // An error means that the client's process ended, or that the client does not speak the store's
            // protocol.
            let _ = Connection { stream, number, shared: &shared }.serve();
            shared.lock().waiting.remove(&number);
            shared.changed.notify_all();
        });
    }
}

/// A connection to one client.
struct Connection<'a> {
    stream: TcpStream,
    number: u64,
    shared: &'a SharedContents,
}

impl Connection<'_> {
    fn serve(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        if self.byte()? != query::VALIDATE || u32::from_ne_bytes(self.array()?) != MAGIC {
            return Err(io::ErrorKind::InvalidData.into());
        }
        loop {
            let query = self.byte()?;
            self.answer(query)?;
        }
    }

    fn answer(&mut self, query: u8) -> io::Result<()> {
        match query {
            query::SET => {
                let (key, value) = (self.text()?, self.bytes()?);
                self.shared.lock().set(key, value);
                self.shared.changed.notify_all();
                Ok(())
            }
            query::COMPARE_SET => {
                let (key, expected, desired) = (self.text()?, self.bytes()?, self.bytes()?);
                let value = self.shared.lock().compare_set(key, expected, desired);
                self.shared.changed.notify_all();
                self.send_bytes(&value)
            }
            query::GET => {
                let key = self.text()?;
                let value = self.shared.lock().get(&key);
                self.send_bytes(&value)
            }
            query::ADD => {
                let (key, number) = (self.text()?, i64::from_ne_bytes(self.array()?));
                let sum = self.shared.lock().add(key, number);
                self.shared.changed.notify_all();
                self.send(&sum.to_ne_bytes())
            }
            query::CHECK => {
                let keys = self.texts()?;
                let is_there = self.shared.lock().has(&keys);
                self.send(&[u8::from(!is_there)])
            }
            query::WAIT => {
                let keys = self.texts()?;
                self.wait(&keys)
            }
            query::COUNT_KEYS => {
                let count = self.shared.lock().values.len();
                self.send(&i64::try_from(count).unwrap_or(i64::MAX).to_ne_bytes())
            }
            query::DELETE_KEY => {
                let key = self.text()?;
                let is_removed = self.shared.lock().values.remove(&key).is_some();
                self.send(&i64::from(is_removed).to_ne_bytes())
            }
            query::APPEND => {
                let (key, value) = (self.text()?, self.bytes()?);
                self.shared.lock().values.entry(key).or_default().extend(value);
                self.shared.changed.notify_all();
                Ok(())
            }
            query::MULTI_GET => {
                for key in self.texts()? {
                    let value = self.shared.lock().get(&key);
                    self.send_bytes(&value)?;
                }
                Ok(())
            }
            query::MULTI_SET => {
                for _pair in 0..self.count()? {
                    let (key, value) = (self.text()?, self.bytes()?);
                    self.shared.lock().set(key, value);
                }
                self.shared.changed.notify_all();
                Ok(())
            }
            query::CANCEL_WAIT => self.send(&[1]),
            query::PING => {
                let number: [u8; 4] = self.array()?;
                self.send(&number)
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Answers when all keys are set, or when the client takes the wait back.
    fn wait(&mut self, keys: &[String]) -> io::Result<()> {
        let mut contents = self.shared.lock();
        contents.waiting.insert(self.number, keys.to_vec());
        self.stream.set_nonblocking(true)?;
        let is_there = loop {
            if !contents.has(keys) {
                contents.answer();
                self.shared.changed.notify_all();
            }
            if contents.has(keys) {
                break Ok(true);
            }
            if contents.is_closed {
                break Err(io::ErrorKind::ConnectionAborted.into());
            }
            match self.stream.peek(&mut [0]) {
                Ok(0) => break Err(io::ErrorKind::ConnectionAborted.into()),
                Ok(_) => break Ok(false),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => break Err(error),
            }
            let waited = self.shared.changed.wait_timeout(contents, PATIENCE);
            contents = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        contents.waiting.remove(&self.number);
        drop(contents);
        self.stream.set_nonblocking(false)?;
        // The bytes that the client sent meanwhile are the next query.
        if is_there? { self.send(&[0]) } else { Ok(()) }
    }

    fn array<const COUNT: usize>(&mut self) -> io::Result<[u8; COUNT]> {
        let mut bytes = [0; COUNT];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn byte(&mut self) -> io::Result<u8> {
        self.array().map(|[byte]| byte)
    }

    fn count(&mut self) -> io::Result<u64> {
        let count = u64::from_ne_bytes(self.array()?);
        if count > MAX_BYTES { Err(io::ErrorKind::InvalidData.into()) } else { Ok(count) }
    }

    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let count = self.count()?;
        let mut bytes = Vec::new();
        (&mut self.stream).take(count).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == count { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn text(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }

    fn texts(&mut self) -> io::Result<Vec<String>> {
        (0..self.count()?).map(|_place| self.text()).collect()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut all = (bytes.len() as u64).to_ne_bytes().to_vec();
        all.extend(bytes);
        self.send(&all)
    }
}
