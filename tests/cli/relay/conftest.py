"""The key file of a relay."""

from tests.relay.conftest import key

__all__ = ["key"]
