"""A smaller tensor may take more memory: up to 1 MiB a tensor is in other segments than above.

This is so with expandable_segments:True, too: the two kinds never share a segment.
"""

import torch

KiB = 2**10
MiB = 2**20

for second in 1025, 1024:
    pool = torch.cuda.MemPool()
    for kib in 1536, second:
        with torch.cuda.use_mem_pool(pool):
            tensor = torch.empty(kib * KiB, dtype=torch.uint8, device="cuda")
        del tensor
    print(f"1536 KiB, freed, then {second} KiB")
    for segment in sorted(torch.cuda.memory_snapshot(pool.id), key=lambda segment: segment["total_size"]):
        print(f"    {segment['segment_type']}: {segment['total_size'] // MiB} MiB reserved")
    del pool
