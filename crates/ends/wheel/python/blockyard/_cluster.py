"""Calls of one function, in this process or as tasks of a cluster of Dask or of Ray."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

Work = Callable[..., Any]

# How often the work of a lost worker is done again.
_RETRIES = 2


def is_dask(scheduler: Any) -> bool:
    """Whether this is a client of Dask."""
    return hasattr(scheduler, "submit") and hasattr(scheduler, "gather")


def check(scheduler: Any) -> None:
    """Raises TypeError for an argument that is not a scheduler."""
    if not (scheduler is None or is_dask(scheduler) or scheduler == "ray"):
        raise TypeError('scheduler is None, a dask.distributed.Client or "ray"')


def each(scheduler: Any, work: Work, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What the function returned for each tuple of arguments, in their order; on Dask and on Ray an exception where it raised one.

    The work of a lost worker is done again by the scheduler.
    """
    check(scheduler)
    if scheduler is None:
        return [work(*call) for call in calls]
    return _on_ray(work, calls) if scheduler == "ray" else _on_dask(scheduler, work, calls)


def _on_dask(client: Any, work: Work, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    # Dask does not run a task again whose key it knows: each call makes new keys.
    key = uuid.uuid4().hex
    futures = [
        client.submit(work, *call, pure=False, retries=_RETRIES, key=f"blockyard-{key}-{place}")
        for place, call in enumerate(calls)
    ]
    answers: list[Any] = []
    try:
        for future in futures:
            try:
                answers.append(future.result())
            # Whatever ended the work of one call: the others go on.
            except Exception as error:  # noqa: BLE001
                answers.append(error)
    except BaseException:
        # Ctrl-C: nobody waits for the others.
        client.cancel(futures)
        raise
    return answers


def _on_ray(work: Work, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    import ray

    if not ray.is_initialized():
        ray.init()
    # Ray types the functions that it makes without their arguments.
    task: Any = ray.remote(max_retries=_RETRIES)(work)
    references = [task.remote(*call) for call in calls]
    answers: list[Any] = []
    for reference in references:
        try:
            answers.append(ray.get(reference))
        except ray.exceptions.RayError as error:
            answers.append(error)
    return answers


class Connection:
    """A client of `dask://HOST:PORT`, or Ray, as `ray` starts it or `ray://HOST:PORT` reaches it."""

    def __init__(self, name: str) -> None:
        self._client: Any = None
        self._name = name

    def __enter__(self) -> Any:
        kind, _, address = self._name.partition("://")
        if kind == "dask" and address:
            import distributed

            # Dask types its client without its arguments.
            client: Any = distributed.Client
            self._client = client(f"tcp://{address}")
            return self._client
        if kind != "ray":
            raise ValueError(f"--on takes dask://HOST:PORT, ray or ray://HOST:PORT, not {self._name!r}")
        import ray

        ray.init(self._name if address else None, log_to_driver=False)
        return "ray"

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()
        elif self._name.startswith("ray"):
            import ray

            ray.shutdown()
