"""The memory of all ranks in the page of `torch.distributed.debug`: each rank's last step, peaks and forecast."""

import html
import os
import pathlib

from torch._C._distributed_c10d import _register_handler
from torch.distributed.debug._frontend import DebugHandler, NavLink, Route, fetch_all

_NAME = "blockyard_watch"


class WatchHandler(DebugHandler):
    """The page, in rank 0, which asks all ranks."""

    def routes(self):
        return [Route("/memory", self._handle)]

    def nav_links(self):
        return [NavLink("/memory", "Memory")]

    def _handle(self, request):
        addrs, answers = fetch_all(_NAME)
        answers = list(answers)
        for answer in answers:
            # The template takes texts as HTML.
            answer.text = html.escape(answer.text)
        return request.frontend.render_template("raw_resp.html", title="Memory", addrs=addrs, resps=answers)


def _answer(_request, response):
    """What the command wrote about this rank."""
    socket = pathlib.Path(os.environ["BLOCKYARD_WATCH_SOCKET"])
    status = socket.with_name(f"{os.getpid()}.status")
    text = status.read_text() if status.is_file() else "no step has ended yet"
    response.set_content(text, "text/plain")
    response.set_status(200)


def add_rank():
    """This rank answers from now on."""
    _register_handler(_NAME, _answer)


def add_page(handlers_module):
    """A page that is started from now on has ours among PyTorch's."""
    others = handlers_module.default_handlers
    handlers_module.default_handlers = lambda: [*others(), WatchHandler()]
