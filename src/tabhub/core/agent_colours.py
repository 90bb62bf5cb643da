"""One colour for each agent, the same for its tab group, the badge in its tabs and its picture in the panel."""

from __future__ import annotations

from collections.abc import Mapping

from tabhub.core.sessions import Session

COLOURS: Mapping[str, str] = {
    "blue": "#1a5fc4",
    "orange": "#b4480a",
    "green": "#18733a",
    "purple": "#7a35c9",
    "pink": "#b31a78",
    "cyan": "#00727d",
    "red": "#c5221f",
    "yellow": "#8a5a00",
}
"""The colours of tab groups, as browsers name them, in a shade that white text can be read on."""
_NAMES = tuple(COLOURS)
_KEPT = 200


class AgentColours:
    """The colours of one hub's agents. Agents share one only when there are more agents than colours."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, session: Session) -> str:
        """The name of its agent's colour."""
        key = session.token or session.name
        known = self._known.get(key)
        if known is None:
            start = sum(key.encode()) % len(_NAMES)
            order = (*_NAMES[start:], *_NAMES[:start])
            used = list(self._known.values())
            known = min(order, key=used.count)
            if len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[key] = known
        return known
