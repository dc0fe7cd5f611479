"""Stands where Pyodide's loader of packages is: the page fetches no packages."""

from pathlib import PurePosixPath

SITE_PACKAGES = PurePosixPath("/lib/python3.13/site-packages")
DSO_DIR = PurePosixPath("/usr/lib")


def init_loaded_packages():
    pass
