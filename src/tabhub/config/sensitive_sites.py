"""Sites that many people will not want agents on: what Tabhub suggests to block at first.

Owns the table. It is a suggestion of well-known names and never complete; nothing is blocked unless the person says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tabhub.config.sites import EVERYONE, SitePattern, SiteSetting


@dataclass(frozen=True, slots=True)
class Category:
    """One kind of sensitive site."""

    title: str
    patterns: tuple[str, ...]

    def missing(self, sites: Iterable[SiteSetting]) -> tuple[str, ...]:
        """The patterns for which everyone has no rule yet."""
        known = {entry.pattern for entry in sites if EVERYONE in entry.levels}
        return tuple(pattern for pattern in self.patterns if SitePattern.parse(pattern) not in known)


CATEGORIES: Mapping[str, Category] = {
    "banking": Category(
        "Banking and payments",
        (
            "*.americanexpress.com",
            "*.bankofamerica.com",
            "*.barclays.co.uk",
            "*.binance.com",
            "*.capitalone.com",
            "*.chase.com",
            "*.citi.com",
            "*.coinbase.com",
            "*.commerzbank.de",
            "*.deutsche-bank.de",
            "*.hsbc.com",
            "*.hsbc.co.uk",
            "*.ing.com",
            "*.ing.de",
            "*.kraken.com",
            "*.lloydsbank.co.uk",
            "*.monzo.com",
            "*.n26.com",
            "*.paypal.com",
            "*.revolut.com",
            "*.santander.com",
            "*.wellsfargo.com",
            "*.wise.com",
        ),
    ),
    "mail": Category(
        "Mail",
        (
            "mail.google.com",
            "outlook.live.com",
            "outlook.office.com",
            "outlook.office365.com",
            "mail.yahoo.com",
            "mail.proton.me",
            "mail.zoho.com",
            "mail.aol.com",
            "*.fastmail.com",
            "*.tuta.com",
            "*.gmx.net",
            "*.icloud.com",
        ),
    ),
    "passwords": Category(
        "Password managers and accounts",
        (
            "*.1password.com",
            "*.1password.eu",
            "*.bitwarden.com",
            "*.bitwarden.eu",
            "*.dashlane.com",
            "*.keepersecurity.com",
            "*.lastpass.com",
            "*.nordpass.com",
            "*.proton.me",
            "passwords.google.com",
            "accounts.google.com",
            "myaccount.google.com",
            "account.microsoft.com",
            "appleid.apple.com",
            "account.apple.com",
        ),
    ),
    "admin": Category(
        "Admin consoles",
        (
            "admin.google.com",
            "console.cloud.google.com",
            "*.console.aws.amazon.com",
            "portal.azure.com",
            "entra.microsoft.com",
            "admin.microsoft.com",
            "admin.cloud.microsoft",
            "dash.cloudflare.com",
            "cloud.digitalocean.com",
            "admin.shopify.com",
            "*.okta.com",
            "dashboard.stripe.com",
        ),
    ),
}
