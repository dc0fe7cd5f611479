//! Standard input, with its end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf, Stdin};

/// Standard input that says to others when it has ended: the protocol's library waits for running answers then,
/// and cancels them too late for a program that runs for minutes.
#[derive(Debug)]
pub(super) struct Input {
    stdin: Stdin,
    has_ended: Arc<AtomicBool>,
}

impl Input {
    pub(super) fn new(has_ended: Arc<AtomicBool>) -> Self {
        Self { stdin: tokio::io::stdin(), has_ended }
    }
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stdin).poll_read(context, buffer);
        if read.is_ready() && buffer.filled().len() == before {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        read
    }
}
