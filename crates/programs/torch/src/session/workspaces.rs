//! The memory that cuBLAS and cuBLASLt work in.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use blockyard_record::{Bytes, StreamId};
use blockyard_rules::{BlasVariables, BlasWorkspaces};

use super::{Session, Thread};
use crate::Result;
use crate::memory::{Category, OwnedBlock, SimulatedGpu};

/// The libraries that multiply matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    Cublas,
    CublasLt,
}

/// A workspace that is kept for one thread, device and stream.
#[derive(Debug)]
struct Workspace {
    library: Library,
    thread: Thread,
    device: u8,
    stream: StreamId,
    block: Option<OwnedBlock>,
}

/// The workspaces that a session keeps for both libraries.
#[derive(Debug, Default)]
pub(super) struct Workspaces {
    variables: Cell<BlasVariables>,
    /// Whether a product of matrices took a workspace.
    is_in_use: Cell<bool>,
    kept: RefCell<Vec<Workspace>>,
}

impl Workspaces {
    /// The numbers of the kept blocks of a device, with the library's name.
    pub(super) fn blocks(&self, device: u8) -> Vec<(u32, &'static str)> {
        let Ok(kept) = self.kept.try_borrow() else { return Vec::new() };
        let of_device = kept.iter().filter(|workspace| workspace.device == device);
        of_device
            .filter_map(|workspace| {
                let name = match workspace.library {
                    Library::Cublas => "cuBLAS",
                    Library::CublasLt => "cuBLASLt",
                };
                workspace.block.as_ref().map(|block| (block.number(), name))
            })
            .collect()
    }
}

impl Session {
    /// Takes the library's workspace by the rule of the session's release. The returned block is a workspace
    /// that the caller frees after the call; `None` where the workspace is kept. One is kept for each thread,
    /// device and stream, and never freed.
    pub(crate) fn take_workspace(
        &self,
        library: Library,
        device: &Rc<SimulatedGpu>,
    ) -> Result<Option<OwnedBlock>> {
        self.workspaces.is_in_use.set(true);
        match (self.workspaces.variables.get().workspaces(self.release.get()), library) {
            (BlasWorkspaces::ForEachCall, library) => {
                return device.allocate(self.workspace_size(library), Category::Workspace);
            }
            (BlasWorkspaces::LtForEachCall, Library::CublasLt) => {
                self.keep_workspace(Library::Cublas, device)?;
                return device.allocate(self.workspace_size(library), Category::Workspace);
            }
            (BlasWorkspaces::Shared, _)
            | (BlasWorkspaces::Kept | BlasWorkspaces::LtForEachCall, Library::Cublas) => {
                self.keep_workspace(Library::Cublas, device)?;
            }
            (BlasWorkspaces::Kept, Library::CublasLt) => {
                // cuBLASLt's handle is cuBLAS's, so that its workspace comes first.
                self.keep_workspace(Library::Cublas, device)?;
                self.keep_workspace(Library::CublasLt, device)?;
            }
        }
        Ok(None)
    }

    fn keep_workspace(&self, library: Library, device: &Rc<SimulatedGpu>) -> Result<()> {
        let (thread, index, stream) = (self.thread.get(), device.index(), device.current_stream());
        let is_there = self.workspaces.kept.borrow().iter().any(|workspace| {
            workspace.library == library
                && workspace.thread == thread
                && workspace.device == index
                && workspace.stream == stream
        });
        if !is_there {
            let block = device.allocate(self.workspace_size(library), Category::Workspace)?;
            self.workspaces.kept.borrow_mut().push(Workspace {
                library,
                thread,
                device: index,
                stream,
                block,
            });
        }
        Ok(())
    }

    fn workspace_size(&self, library: Library) -> Bytes {
        let variables = self.workspaces.variables.get();
        let cublas = variables.cublas_size(self.profile.cublas_workspace());
        match library {
            Library::Cublas => cublas,
            Library::CublasLt => {
                variables.cublaslt_size(self.release.get(), self.profile.cublaslt_workspace(), cublas)
            }
        }
    }

    /// Takes other variables of the environment for cuBLAS and cuBLASLt, as PyTorch does before its first
    /// product of matrices. Returns whether the variables were taken.
    pub fn set_blas_variables(&self, variables: BlasVariables) -> bool {
        let is_taken = !self.workspaces.is_in_use.get();
        if is_taken {
            self.workspaces.variables.set(variables);
        }
        is_taken
    }

    /// The variables of the environment for cuBLAS and cuBLASLt.
    pub fn blas_variables(&self) -> BlasVariables {
        self.workspaces.variables.get()
    }
}
