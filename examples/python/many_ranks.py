"""The snapshots of all ranks of a training at once, on a cluster of this machine.

python examples/python/many_ranks.py FOLDER [WORKERS]

Needs `pip install "dask[distributed]"`; any other `dask.distributed.Client` does as well, also that of a cluster of many machines.
"""

import sys

import blockyard
from dask.distributed import Client, LocalCluster


def main() -> None:
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        found = blockyard.ranks(sys.argv[1], client, confs=["", "expandable_segments:True"])
    print(found)
    for row in found.failed:
        print("failed:", row["path"], row["error"])
    for site in found.differing[:5]:
        print("differs:", site)


# Workers import this file again.
if __name__ == "__main__":
    main()
