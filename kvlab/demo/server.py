"""The server of one demo: on loopback alone, with a random token in the address.

Each request must carry the token in its path and name this host; a page of another site that
guesses the port is refused. Nothing is loaded from elsewhere, and no text is ever run as code.
"""

import json
import secrets
import socket
from importlib.resources import files
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from kvlab.demo.session import Session
from kvlab.errors import InvalidArgument, KvlabError
from kvlab.widgets.base import one_line

HOST = "127.0.0.1"
MAX_BODY = 1_000_000
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
PARTS = ("index.html", "page.css", "page.js", "controls.js", "fit.js", "keys.js", "icon.svg")
HEADERS = {
    # Pictures bring their own style elements, so styles may be inline; scripts may not.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; img-src 'self'; "
    "style-src 'self' 'unsafe-inline'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "kvlab",
}


class DemoServer:
    """Serves one session until it is closed; `address` is where a browser finds it.

    Port 0 takes any that is free. Raises `InvalidArgument` where the port can't be had.
    """

    def __init__(self, session: Session, *, port: int = 0) -> None:
        self.session, self.token = session, secrets.token_urlsafe(24)
        sockets = _bind(port)
        self.port = sockets[0].getsockname()[1]
        self.hosts = (f"{HOST}:{self.port}", f"localhost:{self.port}")
        app = Application(
            [(r"/([^/]+)/([a-z.]*)", Page, {"server": self})],
            default_handler_class=Refused,
            log_function=lambda handler: None,  # a token has no place in a log
        )
        self._http = HTTPServer(app, max_body_size=MAX_BODY, max_buffer_size=2 * MAX_BODY)
        self._http.add_sockets(sockets)

    @property
    def address(self) -> str:
        """Where the page is; it holds the token, so it is for this machine's user alone."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    async def close(self) -> None:
        """Stop what runs, free the port and drop every connection."""
        self.session.halt()
        self._http.stop()
        await self._http.close_all_connections()


def _bind(port: int) -> list[socket.socket]:
    if not isinstance(port, int) or not 0 <= port <= 65_535:
        raise InvalidArgument("port", port, "must be from 0 (any that is free) to 65535")
    try:
        return bind_sockets(port, address=HOST, family=socket.AF_INET)
    except PermissionError:
        raise InvalidArgument("port", port, "needs an administrator; take 1024 or more") from None
    except OSError:
        rule = "is in use, perhaps by another demo; name another one, or none to get any"
        raise InvalidArgument("port", port, rule) from None


class Refused(RequestHandler):
    """Answers whatever has no token: with nothing but a refusal."""

    def set_default_headers(self) -> None:
        """Say on every answer what a browser may do with it."""
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        """Refuse."""
        self.refuse()

    def refuse(self) -> None:
        """End the request with 403 and one line of text."""
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish("refused: open the address that kvlab demo printed\n")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say an error in one line, without a trace."""
        self.finish(json.dumps({"error": f"the demo could not answer ({status_code})"}))


class Page(Refused):
    """The parts of the page, its state, and what the page asks for."""

    def initialize(self, server: DemoServer) -> None:
        """Keep the server whose token counts."""
        self.server = server

    def prepare(self) -> None:
        """Refuse a wrong token, another host's name, and requests that another page makes."""
        token, host = self.path_args[0], self.request.headers.get("Host", "")
        ours = secrets.compare_digest(token.encode(), self.server.token.encode())
        origin = self.request.headers.get("Origin")
        foreign = origin is not None and origin.removeprefix("http://") != host
        if not ours or host not in self.server.hosts or foreign:
            self.refuse()

    def get(self, token: str, name: str) -> None:
        """Give a part of the page, or the state; `since` spares a state that is known."""
        if name == "state":
            state = self.server.session.state()
            same = self.get_query_argument("since", "") == str(state["version"])
            self._give({"same": True} if same else state)
            return
        name = name or PARTS[0]
        if name not in PARTS:
            self.set_status(404)
            self._give({"error": f"the demo has no {name}"})
            return
        self.set_header("Content-Type", f"{TYPES[name.rsplit('.', 1)[1]]}; charset=utf-8")
        self.finish(files("kvlab.demo").joinpath("page", name).read_bytes())

    def post(self, token: str, name: str) -> None:
        """Do what the page asks, and give the state after it; 400 with our error if it can't be."""
        session = self.server.session
        doings: dict[str, Any] = {
            "change": lambda body: session.change(body.get("name"), body.get("value")),
            "preset": lambda body: session.preset(body.get("name")),
            "stage": lambda body: session.choose(body.get("place")),
            "step": lambda body: session.step(body.get("by")),
            "play": lambda body: session.play(),
        }
        try:
            if name not in doings:
                raise InvalidArgument("request", name, f"must be one of {', '.join(doings)}")
            self._give(doings[name](self._body()))
        except KvlabError as error:
            self.set_status(400)
            self._give({**session.state(), "error": one_line(error)})

    def _body(self) -> dict[str, Any]:
        kind = self.request.headers.get("Content-Type", "").split(";")[0]
        if kind != "application/json":
            raise InvalidArgument("Content-Type", kind, "must be application/json")
        try:
            body = json.loads(self.request.body)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise InvalidArgument("request", "body", "must be a JSON object")
        return body

    def _give(self, told: dict[str, Any]) -> None:
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json.dumps(told))
