"""`python -m bench miniwob`: the tasks of MiniWoB++, done by the same scripts with Tabhub and with Playwright MCP.

A policy (`policies/`) is a script for one kind of task. It sees only what the tools answer, through an adapter for each
product (`products/`). The page itself decides whether the task is solved (`site.py`).
"""
