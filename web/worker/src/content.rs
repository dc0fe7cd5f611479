//! Files of the reader, which the worker reads in pieces.

use std::io::{self, Read};

use js_sys::{Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, FileReaderSync};

/// How many bytes are read at a time.
const PIECE: u32 = 4 << 20;

/// Reads a file in pieces, so that the file is never in memory as a whole.
#[derive(Debug)]
pub(crate) struct BlobReader {
    blob: Blob,
    /// The byte of the file after the piece.
    at: f64,
    piece: Vec<u8>,
    /// How many bytes of the piece have been read from the reader.
    taken: usize,
}

impl BlobReader {
    pub(crate) fn new(blob: Blob) -> Self {
        Self { blob, at: 0.0, piece: Vec::new(), taken: 0 }
    }

    /// The file's length in bytes.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "lengths of files are whole numbers"
    )]
    pub(crate) fn length(&self) -> u64 {
        self.blob.size() as u64
    }

    fn next_piece(&mut self) -> Result<(), JsValue> {
        let end = (self.at + f64::from(PIECE)).min(self.blob.size());
        let slice = self.blob.slice_with_f64_and_f64(self.at, end)?;
        let bytes = Uint8Array::new(&FileReaderSync::new()?.read_as_array_buffer(&slice)?.into());
        self.piece.resize(bytes.length() as usize, 0);
        bytes.copy_to(&mut self.piece);
        self.taken = 0;
        self.at = end;
        Ok(())
    }
}

impl Read for BlobReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() && self.at < self.blob.size() {
            self.next_piece().map_err(|thrown| io::Error::other(thrown_message(&thrown)))?;
        }
        let mut left = self.piece.get(self.taken..).unwrap_or_default();
        let count = left.read(into)?;
        self.taken += count;
        Ok(count)
    }
}

/// The browser's message. A file that was changed or removed after it was chosen cannot be read any more.
fn thrown_message(thrown: &JsValue) -> String {
    let message = Reflect::get(thrown, &"message".into()).ok().and_then(|message| message.as_string());
    message.unwrap_or_else(|| "the browser does not say why".to_owned())
}

/// All bytes of a file.
pub(crate) fn whole(file: Blob) -> Vec<u8> {
    let mut bytes = Vec::new();
    // If the file cannot be read to its end, the reader of the content reports that it is cut off.
    let _ = BlobReader::new(file).read_to_end(&mut bytes);
    bytes
}
