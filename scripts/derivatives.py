#!/usr/bin/env python3
"""Which tensors PyTorch's operators save for the backward pass, from the wheel's own derivatives.

    pip download --no-deps torch==2.11.0 && unzip -q torch-*.whl 'torchgen/*' -d wheel
    python scripts/derivatives.py wheel > crates/programs/torch/src/autograd/derivatives.txt
    python scripts/derivatives.py wheel --check crates/programs/torch/src/autograd/derivatives.txt

It needs PyYAML and typing_extensions, and no PyTorch: `torchgen` is Python alone. A line is the node's name, and the saved tensors
as its members: inputs by their names, then outputs. crates/programs/torch's test holds our operators against this list.
"""

import argparse
import os
import sys


def lines(wheel):
    packaged = os.path.join(wheel, "torchgen", "packaged")
    sys.path[:0] = [wheel, packaged]
    from autograd.load_derivatives import load_derivatives

    infos, _ = load_derivatives(
        os.path.join(packaged, "autograd", "derivatives.yaml"),
        os.path.join(packaged, "ATen", "native", "native_functions.yaml"),
        os.path.join(packaged, "ATen", "native", "tags.yaml"),
    )
    found = {}
    for by_key in infos.values():
        for info in by_key.values():
            if info.op is None:
                continue

            # The options of a tensor, its type and device, are not a tensor.
            def is_tensor(attribute):
                return "Tensor" in attribute.nctype.type.cpp_type().replace("TensorOptions", "")

            inputs = sorted(name(a) for a in info.all_saved_inputs if is_tensor(a))
            outputs = sorted(name(a) for a in info.all_saved_outputs if is_tensor(a))
            found.setdefault(info.op, " ".join([info.op, *inputs, *outputs]))
    return [found[op] for op in sorted(found)]


def name(attribute):
    """A view of a tensor's sizes is not a tensor; then the name is the member's."""
    own = attribute.nctype.name
    return own if isinstance(own, str) else own.name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", help="the folder of the unpacked wheel, or where torch is installed")
    parser.add_argument("--check", metavar="FILE", help="compare with this file instead of printing")
    arguments = parser.parse_args()
    made = lines(arguments.wheel)
    if arguments.check is None:
        print("\n".join(made))
        return
    with open(arguments.check) as file:
        kept = file.read().splitlines()
    if kept != made:
        different = sorted(set(kept) ^ set(made))
        sys.exit(f"{arguments.check} is not what this wheel says: {len(different)} lines, first {different[0]!r}")
    print(f"{len(made)} nodes, the same")


if __name__ == "__main__":
    main()
