"""External MCP servers: their configuration, the connections to them, and calls of their tools.

Modules that import the MCP SDK (sdk_session, notifications, oauth, transport) are imported in a thread, and only once a
server is in use: the SDK takes more than a second to load, and most hubs need none of it.
"""
