"""The server: who is let in, what it binds to, what it gives, and how it says no."""

import http.client
import json
import re
import socket
from collections.abc import Callable
from typing import Any

import pytest
from served_demo import Served

from kvlab.demo.server import HEADERS, MAX_BODY, PARTS, DemoServer
from kvlab.demo.session import Session
from kvlab.errors import InvalidArgument

Serve = Callable[[str], Served]
JSON = {"Content-Type": "application/json"}


def ask(
    served: Served, path: str, body: Any = None, **headers: str
) -> tuple[int, http.client.HTTPMessage, str]:
    """Ask once; `path` is below the token unless it starts with a slash."""
    port = served.server.port
    full = path if path.startswith("/") else f"/{served.server.token}/{path}"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    sent = {"Host": f"127.0.0.1:{port}"} | {k.replace("_", "-"): v for k, v in headers.items()}
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
    connection.request("GET" if body is None else "POST", full, data, sent)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def post(served: Served, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    status, _, text = ask(served, path, body, **({"Content_Type": "application/json"} | headers))
    return status, json.loads(text)


def test_without_the_token_nothing_is_told(serve: Serve) -> None:
    served = serve("follow-token")
    token = served.server.token
    for path in (
        "/",
        "/state",
        "/x/",
        "/x/state",
        f"/{token[:-1]}/",
        f"/{token}x/state",
        "/page.js",
    ):
        status, headers, text = ask(served, path)
        assert (status, text) == (403, "refused: open the address that kvlab demo printed\n")
        assert token not in str(headers)
    assert ask(served, f"/{token[:-1]}/play", {})[0] == 403
    assert ask(served, "")[0] == 200 and len(token) >= 32


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "[::1]:80", ""])
def test_a_request_in_the_name_of_another_host_is_refused(serve: Serve, host: str) -> None:
    assert ask(serve("follow-token"), "state", Host=host)[0] in (400, 403)


def test_a_page_of_another_origin_is_refused(serve: Serve) -> None:
    served = serve("follow-token")
    assert ask(served, "state", Origin="http://evil.example")[0] == 403
    assert ask(served, "play", {}, Origin="null")[0] == 403
    assert ask(served, "state", Origin=f"http://127.0.0.1:{served.server.port}")[0] == 200


def test_it_listens_on_loopback_alone(serve: Serve) -> None:
    served = serve("follow-token")
    bound = [one.getsockname()[0] for one in served.server._http._sockets.values()]
    assert bound == ["127.0.0.1"]
    assert served.server.address.startswith("http://127.0.0.1:")


def test_every_answer_says_what_a_browser_may_do(serve: Serve) -> None:
    served = serve("follow-token")
    for path in ("", "state", "page.js", "nothing", "/"):
        _, headers, _ = ask(served, path)
        assert {name: headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy
    assert "script-src 'self';" in policy and "connect-src 'self'" in policy


def test_the_page_needs_nothing_from_elsewhere_and_runs_no_text_as_code(serve: Serve) -> None:
    served = serve("follow-token")
    for name in ("", *PARTS):
        status, headers, text = ask(served, name)
        assert status == 200 and headers["Content-Type"].endswith("charset=utf-8")
        elsewhere = re.findall(r"https?://[^\s\"']+", text)
        assert [one for one in elsewhere if "w3.org" not in one] == []
        assert not re.search(r"\beval\(|new Function|import\(|setTimeout\(['\"]", text)
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=", text)


def test_a_path_outside_the_page_is_not_found(serve: Serve) -> None:
    served = serve("follow-token")
    for name in ("server.py", "nothing", "state.json"):
        assert ask(served, name)[0] in (403, 404)
    assert ask(served, f"/{served.server.token}/../server.py")[0] == 403
    assert ask(served, f"/{served.server.token}/%2e%2e/server.py")[0] == 403


def test_a_change_gives_the_new_state_and_a_wrong_one_our_error(serve: Serve) -> None:
    served = serve("follow-token")
    before = json.loads(ask(served, "state")[2])
    status, after = post(served, "change", {"name": "step", "value": 5})
    assert status == 200 and after["picture"] != before["picture"]
    status, told = post(served, "change", {"name": "zoom", "value": 5})
    assert status == 400
    assert told["error"].startswith("control='zoom': no such control; there are heads, step")
    assert told["picture"] == after["picture"]
    for path, body in (
        ("change", {"name": "step", "value": 99}),
        ("change", {"name": ["step"]}),
        ("preset", {"name": "none"}),
        ("stage", {"place": 9}),
        ("step", {"by": 7}),
        ("reboot", {}),
    ):
        status, told = post(served, path, body)
        assert status == 400 and told["error"], (path, body)


def test_a_body_that_is_no_object_of_json_is_refused(serve: Serve) -> None:
    served = serve("follow-token")
    for body in (b"", b"[1]", b"{", b"\xff", b"[" * 50_000):
        assert post(served, "change", body)[0] == 400
    assert post(served, "change", {}, Content_Type="text/plain")[0] == 400
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(served, "change", b" " * (MAX_BODY + 1), **JSON)
    assert ask(served, "state")[0] == 200


def test_a_state_that_is_known_is_not_sent_again(serve: Serve) -> None:
    served = serve("follow-token")
    state = json.loads(ask(served, "state")[2])
    assert json.loads(ask(served, f"state?since={state['version']}")[2]) == {"same": True}
    post(served, "step", {"by": 1})
    assert json.loads(ask(served, f"state?since={state['version']}")[2])["picture"]


def test_a_race_under_way_can_be_watched_and_stopped_from_the_page(serve: Serve) -> None:
    served = serve("race")
    assert post(served, "preset", {"name": "Live: tiny"})[1]["busy"]
    seen = set()
    while len(seen) < 2 and served.session.busy:
        seen.add(json.loads(ask(served, "state")[2])["picture"])
    status, told = post(served, "change", {"name": "stop", "value": None})
    while told["busy"]:
        told = json.loads(ask(served, "state")[2])
    assert status == 200 and len(seen) > 1 and told["error"] == ""
    lanes = served.session.widget.lanes.values()
    assert "stopped" in {lane.state for lane in lanes} or all(x.num_tokens == 200 for x in lanes)


def test_a_port_in_use_and_a_port_that_is_none_are_one_line(serve: Serve) -> None:
    served = serve("follow-token")
    port = served.server.port
    with pytest.raises(InvalidArgument, match=f"port={port}: is in use, perhaps by another demo"):
        DemoServer(Session(served.session.demo), port=port)
    for port in (-1, 65_536):
        with pytest.raises(InvalidArgument, match=f"port={port}: must be from 0"):
            DemoServer(Session(served.session.demo), port=port)


def test_a_closed_server_leaves_its_port_free_and_no_thread(serve: Serve) -> None:
    served = serve("follow-token")
    ask(served, "state")
    served.close()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", served.server.port))
    served.close = lambda: None
