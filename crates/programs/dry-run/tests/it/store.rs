//! The store of the ranks, asked as PyTorch's client asks it.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;

use blockyard_dry_run::StoreServer;

const SET: u8 = 1;
const COMPARE_SET: u8 = 2;
const GET: u8 = 3;
const ADD: u8 = 4;
const CHECK: u8 = 5;
const WAIT: u8 = 6;
const CANCEL_WAIT: u8 = 12;
const PING: u8 = 13;

struct Client(TcpStream);

impl Client {
    fn new(store: &StoreServer) -> Self {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, store.port())).expect("a connection");
        stream.write_all(&[0]).expect("a query");
        stream.write_all(&0x3C85_F7CE_u32.to_ne_bytes()).expect("the number that a client sends");
        Self(stream)
    }

    fn ask(&mut self, query: u8, texts: &[&[u8]]) {
        let mut bytes = vec![query];
        for text in texts {
            bytes.extend((text.len() as u64).to_ne_bytes());
            bytes.extend(*text);
        }
        self.0.write_all(&bytes).expect("a query");
    }

    fn ask_for_one(&mut self, query: u8, key: &str) {
        let mut bytes = vec![query];
        bytes.extend(1_u64.to_ne_bytes());
        bytes.extend((key.len() as u64).to_ne_bytes());
        bytes.extend(key.as_bytes());
        self.0.write_all(&bytes).expect("a query");
    }

    fn number<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        let mut bytes = [0; COUNT];
        self.0.read_exact(&mut bytes).expect("an answer");
        bytes
    }

    fn text(&mut self) -> String {
        let count = u64::from_ne_bytes(self.number());
        let mut bytes = vec![0; usize::try_from(count).expect("a length")];
        self.0.read_exact(&mut bytes).expect("an answer");
        String::from_utf8(bytes).expect("a text")
    }

    fn get(&mut self, key: &str) -> String {
        self.ask_for_one(WAIT, key);
        assert_eq!(self.number(), [0]);
        self.ask(GET, &[key.as_bytes()]);
        self.text()
    }
}

#[test]
fn ranks_find_what_others_set() {
    let store = StoreServer::start(None, &[0, 1], 2).expect("a port");
    let (mut first, mut second) = (Client::new(&store), Client::new(&store));
    first.ask(PING, &[]);
    first.0.write_all(&7_u32.to_ne_bytes()).expect("a number");
    assert_eq!(first.number(), 7_u32.to_ne_bytes());
    first.ask_for_one(CHECK, "id");
    assert_eq!(first.number(), [1], "it is not there");
    let waiting = thread::spawn(move || second.get("id"));
    first.ask(SET, &[b"id", b"four"]);
    assert_eq!(waiting.join().expect("it waits"), "four");
    for sum in [5_i64, 10] {
        first.ask(ADD, &[b"count"]);
        first.0.write_all(&5_i64.to_ne_bytes()).expect("a number");
        assert_eq!(first.number(), sum.to_ne_bytes());
    }
    assert_eq!(first.get("count"), "10");
    first.ask(COMPARE_SET, &[b"id", b"five", b"six"]);
    assert_eq!(first.text(), "four");
    first.ask(COMPARE_SET, &[b"id", b"four", b"six"]);
    assert_eq!(first.text(), "six");
    assert!(store.assumed().is_empty());
}

#[test]
fn a_wait_is_taken_back() {
    let store = StoreServer::start(None, &[0, 1], 2).expect("a port");
    let mut client = Client::new(&store);
    client.ask_for_one(WAIT, "never");
    client.ask(CANCEL_WAIT, &[]);
    assert_eq!(client.number(), [1]);
}

#[test]
fn ranks_that_do_not_run_are_answered_for_once_all_others_wait() {
    let store = StoreServer::start(None, &[0, 7], 64).expect("a port");
    let (mut first, mut second) = (Client::new(&store), Client::new(&store));
    first.ask(SET, &[b"name/0", b"zero"]);
    first.ask_for_one(WAIT, "name/63");
    second.ask(SET, &[b"name/7", b"seven"]);
    // Rank 7 still runs, and sets what rank 0 waits for only later.
    assert_eq!(second.get("name/0"), "zero");
    store.leave(7);
    assert_eq!(first.number(), [0]);
    first.ask(GET, &[b"name/63"]);
    assert_eq!(first.text(), "zero", "the value of a rank that runs");
    assert_eq!(store.assumed(), ["name/63"]);
}
