"""Many ranks: nothing is lost, whoever does the work."""

import os
import pathlib
import signal

import polars
import pytest

import blockyard

SNAPSHOTS = pathlib.Path(__file__).parents[4] / "tests" / "fixtures" / "snapshots"
CONFS = ["", "expandable_segments:True"]


@pytest.fixture
def paths(tmp_path):
    """Both ranks of a training, a file that is cut off, and one that is not there."""
    cut = tmp_path / "rank2.pickle"
    cut.write_bytes((SNAPSHOTS / "rank0.pickle.gz").read_bytes()[:5000])
    return [SNAPSHOTS / "rank0.pickle.gz", SNAPSHOTS / "rank1.pickle.gz", cut, tmp_path / "rank3.pickle"]


def check(found):
    assert [row["rank"] for row in found.rows] == [0, 1, 2, 3], found.rows
    assert [row["rank"] for row in found.failed] == [2, 3]
    table = polars.DataFrame(found.table)
    assert table["error"].is_null().to_list() == [True, True, False, False]
    good = table.head(2)
    assert (good["placements"] == good["identical"]).all() and good["placements"].min() > 0
    assert (good["peak_reserved"] >= good["peak_allocated"]).all()
    assert found.worst in (0, 1) and found.imbalance >= 1
    assert found.best_conf in CONFS and found.best_peak_reserved <= table["peak_reserved"].max()
    assert "4 ranks; 2 failed" in str(found)
    # Memory of the process that did the work.
    assert good["process_memory"].min() > 1 << 20
    for site in found.differing:
        held = [dict(row["sites"]).get(site.stack, 0) for row in found.rows[:2]]
        assert sorted(held) == [site.least, site.most] and site.most > site.least


def test_in_this_process(paths):
    check(blockyard.ranks(paths, confs=CONFS))


def test_a_file_that_needs_more_memory_is_a_row(paths):
    few = blockyard.ranks(paths[:2], confs=CONFS, memory=1 << 20)
    assert [row["rank"] for row in few.failed] == [0, 1]
    assert all("more than the 1,048,576 that it may have" in row["error"] for row in few.failed), few.failed
    enough = blockyard.ranks(paths[:2], confs=CONFS, memory=1 << 36)
    assert not enough.failed


def test_a_limit_ends_with_its_file(paths):
    blockyard.ranks(paths[:1], memory=1 << 20)
    assert blockyard.open(paths[0]).verify()


def test_a_folder_is_taken_in_the_order_of_its_numbers(tmp_path):
    for number in (10, 9, 2):
        (tmp_path / f"rank{number}.pickle").write_bytes((SNAPSHOTS / "rank0.pickle.gz").read_bytes())
    found = blockyard.ranks(tmp_path, verify=False)
    assert [pathlib.Path(row["path"]).name for row in found.rows] == ["rank2.pickle", "rank9.pickle", "rank10.pickle"]


def test_on_dask_with_a_worker_that_is_killed(paths):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            workers = list(client.run(os.getpid).values())
            assert len(workers) == 2
            os.kill(workers[0], signal.SIGKILL)
            check(blockyard.ranks(paths, client, confs=CONFS))
            few = blockyard.ranks(paths[:2], client, memory=1 << 20)
            assert [row["rank"] for row in few.failed] == [0, 1]


def test_on_ray_with_a_worker_that_is_killed(paths):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        workers = ray.get([ray.remote(lambda: os.getpid()).remote() for _ in range(2)])
        os.kill(workers[0], signal.SIGKILL)
        check(blockyard.ranks(paths, "ray", confs=CONFS))
    finally:
        ray.shutdown()


def test_call_sites_that_differ_are_named(tmp_path):
    paths = [SNAPSHOTS / "rank0.pickle.gz", SNAPSHOTS / "resnet50_amp.pickle.gz"]
    found = blockyard.ranks(paths, verify=False)
    first = found.differing[0]
    assert first.most - first.least == max(site.most - site.least for site in found.differing)
    assert "differs most: " in str(found) and first.stack.splitlines()[0] in str(found)


def test_another_scheduler_is_refused(paths):
    with pytest.raises(TypeError, match="dask"):
        blockyard.ranks(paths, scheduler="slurm")
