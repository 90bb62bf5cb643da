"""browser_save_pdf: prints the page to a file."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urlsplit

from tabhub.browser.driver.cdp_stream import read_stream
from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.elements.hidden_frames import covered
from tabhub.browser.schemas import boolean, closed_object, number, text
from tabhub.browser.secrets.cover import secrets_covered
from tabhub.browser.tool_spec import Call, data_result, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidArguments

_INCH = 2.54
_PAPERS = {
    "a3": (29.7, 42.0),
    "a4": (21.0, 29.7),
    "a5": (14.8, 21.0),
    "letter": (21.59, 27.94),
    "legal": (21.59, 35.56),
}
"""Width and height in cm."""
_MARGIN = number(least=0, most=50)
_SIDES = ("top", "bottom", "left", "right")
_PAGE = re.compile(rb"/Type\s*/Page\b")
_OPTIONS = {
    "landscape?": "boolean",
    "scale?": number(least=0.1, most=2),
    "paper?": {"enum": list(_PAPERS), "description": "Default: what the page's CSS asks for, else a4."},
    "margins?": {
        "description": "In cm: a number, or top, bottom, left, right.",
        "oneOf": [_MARGIN, closed_object(dict.fromkeys((f"{side}?" for side in _SIDES), _MARGIN))],
    },
    "pageRanges?": text("e.g. 1-3, 5", most=200),
    "background?": boolean("Print backgrounds (default true)."),
}


@tool(
    "browser_save_pdf",
    "Save as PDF",
    "Prints the page to a PDF file and returns its path; default file name: the site.",
    params={
        "filePath?": text("Below the files folder, e.g. pdf/page.pdf."),
        "overwrite?": boolean("Replace a file that exists (default false)."),
        "options?": closed_object(_OPTIONS),
    },
    output={"tabId": "integer", "filePath": "string", "bytes": "integer", "pages": "integer"},
    read_only=True,
)
async def save_pdf(call: Call) -> ToolResult:
    args, folder = call.args, call.box.folder
    path = folder.output_path(args["filePath"], (".pdf",)) if "filePath" in args else None
    page = await call.page()
    try:
        async with secrets_covered(page), covered(page):
            printed = await page.cdp("Page.printToPDF", _print_params(args.get("options") or {}))
    except CommandFailed as error:
        raise _explain(error) from None
    stream = parse_object(printed).get("stream")
    data = await read_stream(page, stream, call.box.browsers.limits.file_bytes, "PDF")
    if not data.startswith(b"%PDF-"):
        raise CommandFailed("invalid response: the browser did not return a PDF.")
    path = path or folder.unused_path(urlsplit(page.tab.url).hostname or "page", ".pdf")
    await asyncio.to_thread(folder.write, path, data, overwrite=args.get("overwrite", False))
    facts = {"tabId": page.tab_id, "filePath": str(path), "bytes": len(data), "pages": len(_PAGE.findall(data))}
    return data_result(facts)


def _print_params(options: dict[str, Any]) -> dict[str, Any]:
    """The CDP parameters; lengths are in inches."""
    width, height = _PAPERS[options.get("paper", "a4")]
    params: dict[str, Any] = {
        "transferMode": "ReturnAsStream",
        "landscape": options.get("landscape", False),
        "printBackground": options.get("background", True),
        "scale": options.get("scale", 1),
        "paperWidth": width / _INCH,
        "paperHeight": height / _INCH,
        "preferCSSPageSize": "paper" not in options,
    }
    if "pageRanges" in options:
        params["pageRanges"] = options["pageRanges"]
    margins = options.get("margins", {})
    for side in _SIDES:
        size = margins.get(side) if isinstance(margins, dict) else margins
        if size is not None:
            params[f"margin{side.title()}"] = size / _INCH
    return params


def _explain(error: CommandFailed) -> CommandFailed | InvalidArguments:
    if "Page range" in error.message:
        return InvalidArguments(
            f"options.pageRanges: {error.message}.", hint="Use ranges such as 1-3, 5; the first page is 1."
        )
    if "content area is empty" in error.message:
        return InvalidArguments("The margins leave no printable area.", hint="Reduce options.margins.")
    if "rinting is not" in error.message or "PrintToPDF is not" in error.message:
        return CommandFailed(
            f"This browser cannot print to a file: {error.message}.",
            hint="A policy may disable printing; use a managed browser (tabhub start --launch).",
        )
    return error
