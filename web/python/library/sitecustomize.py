"""Python imports this module when it starts. It says which modules of the library the page does not have."""

import sys

from _left_out import NAMES


class _LeftOut:
    """The last place where a module is looked for."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in NAMES:
            raise ModuleNotFoundError(
                f"the page's Python has no module {name!r}; the command blockyard python has it", name=name
            )


sys.meta_path.append(_LeftOut)
