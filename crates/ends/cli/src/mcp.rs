//! `blockyard mcp`: the answers of the command as tools of the Model Context Protocol, over standard input and
//! output.
//!
//! The tools call what the subcommands call. A thread for each answer computes it, so that a client can cancel
//! it meanwhile.

mod call;
mod folder;
mod input;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, anyhow};
use clap::Args;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{QuitReason, RequestContext};
use rmcp::{RoleServer, ServerHandler, ServiceExt};

use self::call::ToolCall;
use self::folder::Folder;
use self::input::Input;
use crate::dry_run::PythonOption;
use crate::exit_status::ExitStatus;

#[derive(Debug, Args)]
pub(crate) struct McpOptions {
    /// The folder whose files the tools read, with the folders in it. Other files are refused.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    #[command(flatten)]
    python: PythonOption,
}

/// The server of one client.
#[derive(Clone, Debug)]
struct Server {
    folder: Arc<Folder>,
    python: String,
    has_input_ended: Arc<AtomicBool>,
}

pub(crate) fn mcp(options: &McpOptions) -> anyhow::Result<ExitCode> {
    let folder = Arc::new(Folder::new(&options.folder)?);
    // Answers name files as the command does that is called in the folder.
    std::env::set_current_dir(folder.path()).with_context(|| folder.path().display().to_string())?;
    let has_input_ended = Arc::default();
    let input = Input::new(Arc::clone(&has_input_ended));
    let server = Server { folder, python: options.python.command(), has_input_ended };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .context("the server cannot start")?;
    let reason = runtime.block_on(async {
        let running = server.serve((input, tokio::io::stdout())).await?;
        let mut token = Some(running.cancellation_token());
        // The programs of `fit` end before the server does.
        let cancel = move || {
            if let Some(token) = token.take() {
                token.cancel();
            }
        };
        ctrlc::set_handler(cancel).context("cannot listen for Ctrl-C")?;
        running.waiting().await.context("the server failed")
    })?;
    // A thread that waits for more input is not waited for.
    runtime.shutdown_background();
    Ok(match reason {
        QuitReason::Cancelled => ExitStatus::Interrupted,
        _ => ExitStatus::Positive,
    }
    .into())
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("blockyard", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "What PyTorch does with the memory of a GPU. Begin with `verdict` about a memory snapshot; `file` \
                 is relative to the server's folder. Sizes are bytes, requests are counted from 1.",
            )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !tools::has_tool(&request.name) {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        }
        let server = self.clone();
        let call = ToolCall::new(context, Arc::clone(&self.has_input_ended));
        let answer = tokio::task::spawn_blocking(move || {
            let arguments = request.arguments.unwrap_or_default();
            tools::answer(&request.name, arguments, &server.folder, &server.python, &call)
        });
        let answer = answer.await.unwrap_or_else(|error| Err(anyhow!("the answer failed: {error}")));
        Ok(match answer {
            Ok(answer) => CallToolResult::structured(answer),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(format!("{error:#}"))]),
        }
        .into())
    }
}
