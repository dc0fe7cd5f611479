import torch
import torch.nn as nn


def tell(function):
    try:
        function()
        print("nothing raised")
    except RuntimeError as error:
        print(error)


embedding = nn.Embedding(10, 4, padding_idx=1, sparse=True, device="cuda")
print(embedding, nn.EmbeddingBag.from_pretrained(torch.zeros(3, 2), sparse=True))
print(nn.Embedding.from_pretrained(torch.zeros(3, 2), freeze=False, sparse=True).sparse)
weight = torch.zeros(10, 4, device="cuda", requires_grad=True)
nn.functional.embedding(torch.zeros(3, dtype=torch.int64, device="cuda"), weight, sparse=True).sum().backward()
grad = weight.grad
print(grad.is_sparse, grad.layout, grad.is_coalesced(), grad._nnz(), grad.sparse_dim(), grad.dense_dim())
print(tuple(grad.shape), tuple(grad._indices().shape), tuple(grad._values().shape), grad._indices().dtype)
print(weight.is_sparse, weight.layout, weight.sparse_dim(), weight.dense_dim(), grad.to_dense().is_sparse)
for function in (grad.indices, grad.values, weight.indices, weight.values, weight.coalesce, weight.is_coalesced):
    tell(function)
tell(lambda: grad + weight)
for name in "Adam AdamW NAdam RAdam Adamax ASGD Rprop RMSprop Adadelta Adafactor Muon".split():
    tell(getattr(torch.optim, name)([weight]).step)
tell(torch.optim.SGD([weight], lr=0.1, fused=True).step)
tell(torch.optim.Adagrad([weight], weight_decay=0.1).step)
tell(torch.optim.SGD([weight], lr=0.1).step)
weight.grad = torch.zeros(10, 4, device="cuda")
tell(torch.optim.SparseAdam([weight]).step)
tell(lambda: nn.functional.embedding(torch.zeros(3, dtype=torch.int64, device="cuda"), weight, None, None, 2.0, True, True).sum().backward())
several = torch.sparse_coo_tensor([[0, 1, 1, 1], [2, 0, 2, 0]], [3.0, 4.0, 5.0, 6.0])
print(tuple(several.shape), several._nnz(), several.coalesce()._nnz(), several.coalesce().is_coalesced())
print(tuple(several.coalesce().indices().shape), several.to_dense().shape, torch.tensor([1.0, 0.0, 2.0]).to_sparse()._nnz())
tell(lambda: torch.sparse_coo_tensor([[0, 1]], [1.0], (3,)))
tell(lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3)))
tell(lambda: torch.sparse_coo_tensor([0, 1], [1.0, 2.0], (3,)))
