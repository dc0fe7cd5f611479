//! Prints `src/autograd/missing_nodes.txt`: the backward functions of PyTorch's list that no operator here
//! makes.
#![allow(clippy::print_stdout, reason = "`cargo xtask update nodes` takes what is printed")]

fn main() {
    for node in blockyard_torch::autograd::missing_nodes() {
        println!("{node}");
    }
}
