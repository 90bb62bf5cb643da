"""`tabhub site`: what agents may do on which sites. A running hub applies a change at once."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from tabhub.cli.command import JSON, Command, Group, option
from tabhub.cli.hub.settings import apply_changes, home_and_config
from tabhub.cli.terminal import paint, print_json, safe
from tabhub.client_errors import UsageError
from tabhub.config.sensitive_sites import CATEGORIES
from tabhub.config.sites import SITE_LEVELS, SiteLevel, with_level
from tabhub.errors import SetupError
from tabhub.store import config_file
from tabhub.store.home import Home
from tabhub.trust.site_rules import SiteRules

_MEANINGS: dict[SiteLevel, str] = {
    "block": "Keep agents off a site: not listed, read, opened or shown in any way",
    "read": "Let agents read a site, and not act there",
    "ask": "Let agents act on a site only with your approval",
    "act": "Let agents act on a site without approval",
}


def _set(level: SiteLevel) -> Command:
    def run(args: Namespace) -> None:
        _write(args.pattern, args.agent, level)
        who = safe(args.agent) if args.agent else "every agent"
        print(f"{safe(args.pattern)}: {paint(level, 'bold')} for {who}")
        apply_changes()

    return Command(run, _PATTERN, _AGENT, summary=_MEANINGS[level])


def remove(args: Namespace) -> None:
    _write(args.pattern, args.agent, None)
    print(f"Removed the rule for {safe(args.pattern)}{f' of {safe(args.agent)}' if args.agent else ''}.")
    apply_changes()


def _write(pattern: str, agent: str | None, level: SiteLevel | None) -> None:
    try:
        config_file.change_section(Home.find(), "sites", lambda values: with_level(values, pattern, agent, level))
    except SetupError as error:
        raise UsageError(error.message, error.hint) from None


def show(args: Namespace) -> None:
    _, config = home_and_config()
    rules = SiteRules.parse(config).rules
    if args.json:
        return print_json([{"pattern": str(r.pattern), "agent": r.agent, "level": r.level} for r in rules])
    if not rules:
        print("No site rules. Keep agents off a site: tabhub site block '*.bank.example'")
    room = max((len(str(rule.pattern)) for rule in rules), default=0)
    for rule in rules:
        print(f"{str(rule.pattern).ljust(room)}  {rule.level.ljust(5)}  {safe(rule.agent or 'every agent')}")


def suggest(args: Namespace) -> None:
    _, config = home_and_config()
    if args.block is not None:
        return _block(args.block)
    if args.json:
        return print_json({name: list(category.patterns) for name, category in CATEGORIES.items()})
    for name, category in CATEGORIES.items():
        missing = category.missing(config.sites)
        state = "all have a rule" if not missing else f"{len(missing)} without a rule"
        print(f"{paint(name, 'bold')}  {category.title}, {state}")
        for pattern in category.patterns:
            print(f"  {paint(pattern, 'dim') if pattern not in missing else pattern}")
    print("\nBlock one of these categories: tabhub site suggest --block banking")


def _block(name: str) -> None:
    _, config = home_and_config()
    missing = CATEGORIES[name].missing(config.sites)
    for pattern in missing:
        _write(pattern, None, "block")
        print(f"{pattern}: {paint('block', 'bold')}")
    if not missing:
        print("All of these sites have a rule already.")
    apply_changes()


def _suggest_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--block", metavar="CATEGORY", choices=list(CATEGORIES), help=", ".join(CATEGORIES))


_PATTERN = option("pattern", metavar="PATTERN", help="bank.example, *.bank.example, https://bank.example:8443, or *")
_AGENT = option("--agent", metavar="NAME", help="only for the agent whose token has this name")

COMMAND = Group(
    {
        **{level: _set(level) for level in SITE_LEVELS},
        "remove": Command(remove, _PATTERN, _AGENT, summary="Remove the rule for a site"),
        "list": Command(show, JSON, summary="List the rules, the most specific first"),
        "suggest": Command(
            suggest, _suggest_arguments, JSON, summary="List well-known sensitive sites, or block a category of them"
        ),
    },
    examples=(
        ("tabhub site block '*.bank.example'", "keep agents off a site and its subdomains"),
        ("tabhub site read https://wiki.example --agent claude", "let one agent only read another"),
        ("tabhub site suggest --block banking", "block well-known banks"),
        ("tabhub permissions explain --tool browser_click_element --url https://wiki.example", "what decides"),
    ),
)
