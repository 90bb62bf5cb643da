"""The structure of an HTTP Archive 1.2 according to its specification: required and optional fields and their types."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

NUMBER = (int, float)
STRING = (str,)
OBJECT = (dict,)
LIST = (list,)
_Fields = dict[str, tuple[type, ...]]
COMMENT: _Fields = {"comment": STRING}
PAIR: tuple[_Fields, _Fields] = ({"name": STRING, "value": STRING}, COMMENT)
SHAPES: dict[str, tuple[_Fields, _Fields]] = {
    "log": (
        {"version": STRING, "creator": OBJECT, "entries": LIST},
        {"browser": OBJECT, "pages": LIST, **COMMENT},
    ),
    "creator": ({"name": STRING, "version": STRING}, COMMENT),
    "page": ({"startedDateTime": STRING, "id": STRING, "title": STRING, "pageTimings": OBJECT}, COMMENT),
    "pageTimings": ({}, {"onContentLoad": NUMBER, "onLoad": NUMBER, **COMMENT}),
    "entry": (
        {
            "startedDateTime": STRING,
            "time": NUMBER,
            "request": OBJECT,
            "response": OBJECT,
            "cache": OBJECT,
            "timings": OBJECT,
        },
        {"pageref": STRING, "serverIPAddress": STRING, "connection": STRING, **COMMENT},
    ),
    "request": (
        {
            "method": STRING,
            "url": STRING,
            "httpVersion": STRING,
            "cookies": LIST,
            "headers": LIST,
            "queryString": LIST,
            "headersSize": NUMBER,
            "bodySize": NUMBER,
        },
        {"postData": OBJECT, **COMMENT},
    ),
    "response": (
        {
            "status": NUMBER,
            "statusText": STRING,
            "httpVersion": STRING,
            "cookies": LIST,
            "headers": LIST,
            "content": OBJECT,
            "redirectURL": STRING,
            "headersSize": NUMBER,
            "bodySize": NUMBER,
        },
        COMMENT,
    ),
    "cookie": (
        {"name": STRING, "value": STRING},
        {"path": STRING, "domain": STRING, "expires": STRING, "httpOnly": (bool,), "secure": (bool,), **COMMENT},
    ),
    "header": PAIR,
    "query": PAIR,
    "postData": ({"mimeType": STRING, "text": STRING}, {"params": LIST, **COMMENT}),
    "content": (
        {"size": NUMBER, "mimeType": STRING},
        {"compression": NUMBER, "text": STRING, "encoding": STRING, **COMMENT},
    ),
    "cache": ({}, {"beforeRequest": OBJECT, "afterRequest": OBJECT, **COMMENT}),
    "timings": (
        {"send": NUMBER, "wait": NUMBER, "receive": NUMBER},
        {"blocked": NUMBER, "dns": NUMBER, "connect": NUMBER, "ssl": NUMBER, **COMMENT},
    ),
}


def problems(archive: Any) -> list[str]:
    """All differences between an archive and the specification."""
    return list(_archive(archive))


def _shape(place: str, name: str, given: Any) -> Iterator[str]:
    """Whether an object has its required fields with the right types; names that begin with _ are custom."""
    if not isinstance(given, dict):
        yield f"{place} is not an object"
        return
    needed, allowed = SHAPES[name]
    yield from (f"{place} has no {field}" for field in needed if field not in given)
    for field, value in given.items():
        kinds = needed.get(field) or allowed.get(field)
        if kinds is None and not field.startswith("_"):
            yield f"{place} has {field}, which the specification does not know"
        elif kinds is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            yield f"{place}.{field} is {value!r}"


def _archive(archive: Any) -> Iterator[str]:
    if not isinstance(archive, dict) or set(archive) != {"log"}:
        yield "not one log"
        return
    log = archive["log"]
    yield from _shape("log", "log", log)
    yield from _shape("creator", "creator", log["creator"])
    if log["version"] != "1.2":
        yield f"version is {log['version']}"
    ids = [page["id"] for page in log["pages"]]
    if len(ids) != len(set(ids)):
        yield "two pages have one id"
    for page in log["pages"]:
        yield from _shape(page["id"], "page", page)
        yield from _shape(page["id"], "pageTimings", page["pageTimings"])
        yield from _moment(page["id"], page["startedDateTime"])
    for number, entry in enumerate(log["entries"]):
        place = f"{number} {entry['request']['url'][-40:]}"
        yield from _shape(place, "entry", entry)
        yield from _moment(place, entry["startedDateTime"])
        if entry["pageref"] not in ids:
            yield f"{place} is of a page that is not there"
        for part in ("request", "response", "cache", "timings"):
            yield from _shape(f"{place} {part}", part, entry[part])
        yield from _request(f"{place} request", entry["request"])
        yield from _response(f"{place} response", entry["response"])
        yield from _timings(place, entry)


def _moment(place: str, text: str) -> Iterator[str]:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", text):
        yield f"{place} began at {text}"
    elif datetime.fromisoformat(text).year < 2000:
        yield f"{place} began in {text}"


def _both(place: str, message: Any) -> Iterator[str]:
    for name, shape in (("headers", "header"), ("cookies", "cookie")):
        for item in message[name]:
            yield from _shape(f"{place} {name}", shape, item)
            if shape == "header" and ("\n" in item["value"] or not item["name"]):
                yield f"{place} has the header {item!r}"
    for size in ("headersSize", "bodySize"):
        if type(message[size]) is not int or message[size] < -1:
            yield f"{place}.{size} is {message[size]}"


def _request(place: str, request: Any) -> Iterator[str]:
    yield from _both(place, request)
    for item in request["queryString"]:
        yield from _shape(f"{place} queryString", "query", item)
    if "postData" in request:
        yield from _shape(f"{place} postData", "postData", request["postData"])


def _response(place: str, response: Any) -> Iterator[str]:
    yield from _both(place, response)
    content = response["content"]
    yield from _shape(f"{place} content", "content", content)
    if content["size"] < 0:
        yield f"{place} has a content of {content['size']} bytes"
    if "encoding" in content:
        if content["encoding"] != "base64" or "text" not in content:
            yield f"{place} has a content in {content['encoding']}"
        elif len(base64.b64decode(content["text"], validate=True)) != content["size"]:
            yield f"{place} has a content of another size than it says"
    status = response["status"]
    if status and not 100 <= status <= 599:
        yield f"{place}.status is {status}"
    if status == 304 and response["bodySize"] != 0:
        yield f"{place} has a body though nothing was sent"
    if bool(response["redirectURL"]) != (300 <= status < 400 and status != 304):
        yield f"{place} with {status} leads to {response['redirectURL']!r}"


def _timings(place: str, entry: Any) -> Iterator[str]:
    timings = {name: value for name, value in entry["timings"].items() if name != "comment"}
    for name, value in timings.items():
        if value < 0 and (value != -1 or name in ("send", "wait", "receive")):
            yield f"{place} took {value} for {name}"
    spent = sum(value for name, value in timings.items() if value > 0 and name != "ssl")
    if abs(spent - entry["time"]) > 0.01:
        yield f"{place} took {entry['time']}, its steps {spent}"
