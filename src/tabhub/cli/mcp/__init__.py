"""`tabhub mcp`: which commands there are. Their module is imported when one is used."""

from tabhub.cli.command import Group, LazyCommand

_MODULE = "tabhub.cli.mcp.command"

COMMAND = Group(
    {
        "add": LazyCommand("Add servers from a file, standard input, or by name and URL", _MODULE, "ADD"),
        "list": LazyCommand("List servers and their status", _MODULE, "LIST"),
        "tools": LazyCommand("List the tools of a server", _MODULE, "TOOLS"),
        "enable": LazyCommand("Enable a server, or some of its tools", _MODULE, "ENABLE"),
        "disable": LazyCommand("Disable a server, or some of its tools", _MODULE, "DISABLE"),
        "refresh": LazyCommand("Reload a server's tools (signs in if needed)", _MODULE, "REFRESH"),
        "remove": LazyCommand("Remove a server", _MODULE, "REMOVE"),
        "import": LazyCommand("Import MCP servers from Claude Code, Cursor or VS Code", _MODULE, "IMPORT"),
    },
    examples=(
        ("tabhub mcp add weather http://localhost:3001/mcp", "add a server by URL"),
        ("tabhub mcp disable weather --tool forecast", "disable a single tool"),
        ("tabhub mcp import claude-code", "add the servers of Claude Code"),
    ),
)
