"""Outgoing HTTP: one blocking client (`http_client`) and one for asyncio (`async_http`), both HTTP/1.1.

Knows no API and no endpoint; callers set the bounds and decide what a status means.
"""
