"""Sequences of different lengths."""

import torch


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    longest = max(s.size(0) for s in sequences)
    first = sequences[0]
    shape = (len(sequences), longest) if batch_first else (longest, len(sequences))
    out = torch.full(shape + tuple(first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
    for i, sequence in enumerate(sequences):
        length = sequence.size(0)
        if batch_first:
            out[i, :length] = sequence
        else:
            out[:length, i] = sequence
    return out


def pack_padded_sequence(*args, **kwargs):
    raise NotImplementedError("torch.nn.utils.rnn.pack_padded_sequence is not modeled here; give the module the padded batch")


pad_packed_sequence = pack_sequence = pack_padded_sequence
