//! One call of a tool: its progress, and whether the client cancelled it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use blockyard_answers::FitHolder;
use blockyard_budget::fit::RunCaller;
use blockyard_replay::Progress;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::runtime::Handle;

/// The least time between two notifications about one call.
const MIN_BETWEEN: Duration = Duration::from_millis(100);

/// A call of a tool. Its own thread answers it.
#[derive(Debug)]
pub(super) struct ToolCall {
    context: RequestContext<RoleServer>,
    server: Handle,
    has_input_ended: Arc<AtomicBool>,
    /// How many notifications were sent, and when the last one was.
    sent: Mutex<(u32, Option<Instant>)>,
}

impl ToolCall {
    /// A call of the server that runs on this thread.
    pub(super) fn new(context: RequestContext<RoleServer>, has_input_ended: Arc<AtomicBool>) -> Self {
        Self { context, server: Handle::current(), has_input_ended, sent: Mutex::default() }
    }

    /// Reports the progress of an answer; breaks if the client cancelled the call.
    pub(super) fn report(&self, progress: &Progress) -> ControlFlow<()> {
        if self.context.ct.is_cancelled() {
            return ControlFlow::Break(());
        }
        if self.is_due() {
            let share = progress.done.saturating_mul(100).checked_div(progress.total);
            let share = share.map_or_else(String::new, |percent| format!(", {percent} %"));
            self.notify(format!("{}{share}", progress.phase));
        }
        ControlFlow::Continue(())
    }

    /// Whether the client wants progress, and the last notification is long enough ago.
    fn is_due(&self) -> bool {
        let Ok(sent) = self.sent.lock() else { return false };
        sent.1.is_none_or(|last| last.elapsed() >= MIN_BETWEEN)
    }

    /// Tells the client what is done now. The number of notifications is the progress that grows.
    fn notify(&self, message: String) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let Ok(mut sent) = self.sent.lock() else { return };
        *sent = (sent.0.saturating_add(1), Some(Instant::now()));
        let progress = ProgressNotificationParam::new(token, sent.0.into()).with_message(message);
        // A client that is gone needs no progress.
        let _ = self.server.block_on(self.context.peer.notify_progress(progress));
    }
}

impl RunCaller for ToolCall {
    fn is_stopped(&self) -> bool {
        self.context.ct.is_cancelled() || self.has_input_ended.load(Ordering::Relaxed)
    }

    fn show(&self, what: String) {
        self.notify(what);
    }

    fn lines_at_peak(&self, snapshot: &Path) -> Result<Vec<FitHolder>, String> {
        crate::fit::lines(snapshot)
    }
}
