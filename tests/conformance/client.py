"""The command the conformance suite runs as a client: it passes the URL on to the hub under test and waits.

`client.py PORT URL`; the process that listens on the port receives one line of JSON and answers with another.
"""

import json
import os
import socket
import sys

given = {
    "url": sys.argv[2],
    "scenario": os.environ.get("MCP_CONFORMANCE_SCENARIO", ""),
    "version": os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION"),
    "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
}
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as wire, wire.makefile("rw") as file:
    file.write(json.dumps(given) + "\n")
    file.flush()
    answer = json.loads(file.readline() or '{"problem": "the hub is gone"}')
print(json.dumps(answer))
sys.exit(1 if answer.get("problem") else 0)
