"""A plugin in Python: the manifest and the tools are here, the page's part is in page.js."""

from tabhub.plugins.author import define

plugin = define(
    name="timer",
    display_name="Kitchen timer",
    description="Sets and reads the timer of a small kitchen site.",
    version="1.0.0",
    url_patterns=["http://localhost/timer*", "http://127.0.0.1/timer*"],
    page="page.js",
)


@plugin.tool(read_only=True)
def read_timer() -> None:
    """Returns how many seconds are left, and whether the timer is running."""


@plugin.tool(
    properties={"seconds": {"type": "integer", "minimum": 1, "maximum": 36000, "description": "How long."}},
    required=["seconds"],
    idempotent=True,
)
def set_timer() -> None:
    """Sets the timer and starts it."""


@plugin.tool(properties={"seconds": {"type": "number", "minimum": 0, "maximum": 600}}, read_only=True)
def wait_for_timer() -> None:
    """Waits until the timer has run out, or for the given time, and reports its progress."""
