"""The relay: browsers and agents on different machines, many users, one node or several."""
