//! Sparse gradients: the marks of lines that depend on values, and the errors of what knows no sparse tensors.
//! What a program sees of them is in `modules`.

use crate::support::run;

#[test]
fn a_line_is_marked_where_the_number_of_different_indices_decides() {
    let source = "import torch\nw = torch.zeros(9, 4, device='cuda', requires_grad=True)\n\
                  i = torch.zeros(5, dtype=torch.int64, device='cuda')\n\
                  torch.nn.functional.embedding(i, w, sparse=True).sum().backward()\n\
                  d = w.grad.to_dense()\ng = w.grad.coalesce()\nprint(g._nnz())\n";
    let (printed, finished) = run(source);
    assert_eq!((printed.as_str(), finished.traceback), ("5\n", None));
    let lines: Vec<_> = finished.estimates.iter().map(|estimate| estimate.line).collect();
    assert_eq!(lines, [6]);
}

#[test]
fn operators_that_know_no_sparse_tensors_say_so() {
    let source = "import torch\ns = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), device='cuda')\n\
                  try:\n    s.sigmoid()\nexcept NotImplementedError as error:\n    print(error)\n\
                  torch.sparse.mm(s, s)\n";
    let (printed, finished) = run(source);
    assert_eq!(printed, "sigmoid of sparse tensors is not modeled: call .to_dense() first\n");
    assert!(
        finished.traceback.expect("torch.sparse is refused").contains("of sparse tensors only gradients")
    );
}
