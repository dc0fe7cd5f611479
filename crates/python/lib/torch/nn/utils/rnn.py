"""Sequences of different lengths."""

import torch
from _refused import Missing as _Missing


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


pack_padded_sequence, pad_packed_sequence, pack_sequence, PackedSequence = (
    _Missing(f"torch.nn.utils.rnn.{name}", "give the module the padded batch")
    for name in ("pack_padded_sequence", "pad_packed_sequence", "pack_sequence", "PackedSequence"))


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    sequences = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[:int(length)] for sequence, length in zip(sequences, lengths)]
