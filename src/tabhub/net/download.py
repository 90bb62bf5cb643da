"""Downloads over http and https with the standard library's client, which knows the proxies of the environment.

Owns redirects, bounds and error messages. Slow to import; requests to the hub are sent by `http_client`.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin, urlsplit

from tabhub.client_errors import HttpConnectError, HttpConnectionClosed, HttpTimeout, InvalidHttpResponse
from tabhub.net.http_client import Response

_BLOCK = 256 * 1024
_MAX_REQUESTS = 10
"""The first one, and those that follow redirects."""
_REDIRECTS = (301, 302, 303, 307, 308)


def get(url: str, headers: Mapping[str, str], *, timeout: float, stall_timeout: float, max_body: int) -> Response:
    """Fetch an http or https URL; raises HttpError.

    `stall_timeout` bounds the seconds without any data. A redirect is followed only to https or within the origin; any
    other is returned as the response. The Authorization header is not sent to another host.
    """
    deadline = time.monotonic() + timeout
    for _ in range(_MAX_REQUESTS):
        response = _get_once(url, headers, deadline, stall_timeout, max_body)
        location = response.headers.get("location")
        if response.status not in _REDIRECTS or not location:
            return response
        before, url = urlsplit(url), urljoin(url, location)
        after = urlsplit(url)
        if after.scheme != "https" and (after.scheme, after.netloc) != (before.scheme, before.netloc):
            return response
        if after.netloc != before.netloc:
            headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    raise InvalidHttpResponse("it redirects too often")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves redirects to the caller: the library would send credentials along and read bodies of any size."""

    def redirect_request(self, *_args: Any) -> None:
        return None


def _get_once(url: str, headers: Mapping[str, str], deadline: float, stall_timeout: float, max_body: int) -> Response:
    request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 - http or https, as the caller checked
    try:
        try:
            opened = urllib.request.build_opener(_NoRedirects).open(request, timeout=stall_timeout)
        except HTTPError as response:
            opened = response
        with opened:
            found = {name.lower(): value for name, value in opened.headers.items()}
            return Response(opened.status, found, _read(opened, deadline, max_body))
    except TimeoutError:
        raise HttpTimeout("it did not respond in time") from None
    except URLError as error:
        raise HttpConnectError(str(getattr(error.reason, "strerror", None) or error.reason)) from None
    except OSError:
        raise HttpConnectionClosed("it closed the connection before it responded") from None
    except HTTPException as error:
        raise InvalidHttpResponse(f"it is not valid HTTP: {error!r}") from None


def _read(opened: Any, deadline: float, max_body: int) -> bytes:
    body = bytearray()
    while chunk := opened.read1(_BLOCK):
        body += chunk
        if len(body) > max_body:
            raise InvalidHttpResponse(f"it sent a response larger than {max_body} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    declared = opened.headers.get("content-length", "")
    if declared.isdigit() and len(body) < int(declared):  # the library reports that only for a read without bounds
        raise ConnectionError
    return bytes(body)
