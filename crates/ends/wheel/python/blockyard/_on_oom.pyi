import os

def on_oom(
    folder: str | os.PathLike[str], max_files: int = 3, max_entries: int = 100_000, report: bool = True
) -> None: ...
