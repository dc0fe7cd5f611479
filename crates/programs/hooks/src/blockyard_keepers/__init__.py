"""Who keeps the blocks of a program whose blocks become more and more: one search for dry runs, over PyTorch's own tensors, and
for Blockyard's PyTorch.
"""
