"""`tabhub plugin`: which commands there are. Their modules are imported when they are used."""

from tabhub.cli.command import Group, LazyCommand

_USE, _AUTHOR = "tabhub.cli.plugin.command", "tabhub.cli.plugin.author"

COMMAND = Group(
    {
        "search": LazyCommand("Search the registry for plugins", _USE, "SEARCH"),
        "list": LazyCommand("List installed plugins, and those that failed to load", _USE, "LIST"),
        "install": LazyCommand("Install a plugin", _USE, "INSTALL"),
        "update": LazyCommand("Update plugins from the registry", _USE, "UPDATE"),
        "remove": LazyCommand("Remove a plugin", _USE, "REMOVE"),
        "configure": LazyCommand("Show and change a plugin's settings", _USE, "CONFIGURE"),
        "inspect": LazyCommand("Show a plugin's tools and settings", _USE, "INSPECT"),
        "create": LazyCommand("Create a working plugin with a test", _AUTHOR, "CREATE"),
        "dev": LazyCommand("Use a plugin's folder and reload it when files change", _AUTHOR, "DEV"),
    },
    examples=(
        ("tabhub plugin search jira", "search the registry"),
        ("tabhub plugin install jira", "install a plugin"),
        ("tabhub plugin configure jira instanceUrl.work=https://jira.example.com", "change a setting"),
        ("tabhub plugin create my-app --url 'https://my.example.com/*'", "write your own"),
    ),
)
