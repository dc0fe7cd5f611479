//! Captured graphs: the launch of a graph runs nothing.
#![expect(unsafe_code, reason = "functions are exported under CUDA's names")]

use std::ffi::{c_int, c_ulonglong};

use crate::abi::Out;
use crate::runtime::errors::{INVALID_HANDLE, SUCCESS, fail};
use crate::state::state;
use crate::values::note_computation;

fn instantiate(to: Out<usize>, graph: usize) -> c_int {
    let mut state = state();
    if state.graphs.get(graph).is_none() {
        return fail(INVALID_HANDLE);
    }
    to.put(state.graphs.add(()));
    SUCCESS
}

fn destroy(graph: usize) -> c_int {
    let removed = state().graphs.remove(graph);
    if removed.is_some() { SUCCESS } else { fail(INVALID_HANDLE) }
}

entries! {
    fn cudaGraphInstantiateWithFlags(to: Out<usize>, graph: usize, _flags: c_ulonglong) -> c_int {
        instantiate(to, graph)
    }

    fn cudaGraphInstantiate(to: Out<usize>, graph: usize, _flags: c_ulonglong) -> c_int {
        instantiate(to, graph)
    }

    fn cudaGraphLaunch(graph: usize, _stream: usize) -> c_int {
        let known = state().graphs.get(graph).is_some();
        note_computation();
        if known { SUCCESS } else { fail(INVALID_HANDLE) }
    }

    // Reports one node, since PyTorch warns about a graph without nodes.
    fn cudaGraphGetNodes(_graph: usize, nodes: Out<usize>, count: Out<usize>) -> c_int {
        if count.get().is_some_and(|room| room > 0) {
            nodes.put(1);
        }
        count.put(1);
        SUCCESS
    }

    fn cudaGraphDestroy(graph: usize) -> c_int {
        destroy(graph)
    }

    fn cudaGraphExecDestroy(graph: usize) -> c_int {
        destroy(graph)
    }
}

setting! { cudaGraphDebugDotPrint }
