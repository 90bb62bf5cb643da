"""Outgoing HTTP/1.1: to the hub (`http_client`, quick to import), downloads (`download`), for asyncio (`async_http`).

Knows no API and no endpoint; callers set the bounds and decide what a status means.
"""
