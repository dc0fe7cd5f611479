"""Attention."""

import torch
from torch.nn import functional as F
from torch.nn import init
from torch.nn.layers._linear import NonDynamicallyQuantizableLinear
from torch.nn.module import Module
from torch.nn.parameter import Parameter


class MultiheadAttention(Module):
    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if add_bias_kv or add_zero_attn:
            raise NotImplementedError(
                "add_bias_kv and add_zero_attn of nn.MultiheadAttention are not modeled here; leave them out"
            )
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = kdim if kdim is not None else embed_dim, vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        factory = {"device": device, "dtype": dtype}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(torch.empty((3 * embed_dim, embed_dim), **factory))
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = Parameter(torch.empty((embed_dim, embed_dim), **factory))
            self.k_proj_weight = Parameter(torch.empty((embed_dim, self.kdim), **factory))
            self.v_proj_weight = Parameter(torch.empty((embed_dim, self.vdim), **factory))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(torch.empty(3 * embed_dim, **factory))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory)
        self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        if query.size(-1) != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {query.size(-1)}")
        is_batched = query.dim() == 3
        is_fast = not any(mask is not None and mask.is_floating_point() for mask in (attn_mask, key_padding_mask))
        key_padding_mask = F._canonical_mask(key_padding_mask, query.dtype)
        attn_mask = F._canonical_mask(attn_mask, query.dtype)
        if is_fast and self._takes_fast_path(query, key, value):
            merged_mask = self._merged(attn_mask, key_padding_mask, query)
            return F._native_multi_head_attention(
                query,
                self.embed_dim,
                self.num_heads,
                self.in_proj_weight,
                self.in_proj_bias,
                self.out_proj.weight,
                self.out_proj.bias,
                need_weights,
                average_attn_weights,
                merged_mask,
            )
        if self.batch_first and is_batched:
            if key is value:
                if query is key:
                    query = key = value = query.transpose(1, 0)
                else:
                    query, key = (x.transpose(1, 0) for x in (query, key))
                    value = key
            else:
                query, key, value = (x.transpose(1, 0) for x in (query, key, value))
        attn_output, attn_output_weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        if self.batch_first and is_batched:
            return attn_output.transpose(1, 0), attn_output_weights
        return attn_output, attn_output_weights

    def _merged(self, mask, padding, query):
        """Both masks as one, of all heads unless it is the padding alone (`merge_masks`)."""
        if mask is None:
            return padding
        batch, length, _ = query.shape
        if mask.dim() == 3:
            mask = mask.view(batch, -1, length, length)
        else:
            mask = mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if padding is None:
            return mask
        return mask + padding.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)

    def _takes_fast_path(self, query, key, value):
        if (
            self.training
            or query.dim() != 3
            or query is not key
            or key is not value
            or not query.is_cuda
            or not self.batch_first
        ):
            return False
        if (
            self.in_proj_weight is None
            or self.in_proj_bias is None
            or query.dtype != self.in_proj_weight.dtype
            or self.num_heads % 2 != 0
        ):
            return False
        tensors = (query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias)
        return not torch.is_autocast_enabled() and not (
            torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
        )
