"""`tabhub relay`: which commands there are. Their modules are imported when they are used."""

from tabhub.cli.command import Group, LazyCommand

_NODE = "tabhub.cli.relay.command"

COMMAND = Group(
    {
        "start": LazyCommand("Run a relay node in the foreground", _NODE, "START"),
        "status": LazyCommand("Show the status of a running node", _NODE, "STATUS"),
        "token": LazyCommand("Issue, inspect and revoke the relay's tokens", "tabhub.cli.relay.token"),
    },
    examples=(
        ("openssl rand -hex 32 > relay.key", "a key"),
        ("tabhub relay start --port 9700 --key-file relay.key", "a relay"),
        ("tabhub relay token issue --user ann --key-file relay.key", "a token for a browser or an agent"),
    ),
)
