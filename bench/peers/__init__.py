"""`python -m bench peers`: Tabhub next to other MCP servers for browsers.

Each server has its own headless Chromium of the same binary and shows the same local pages. They take turns, so that
slow periods of the machine affect all of them. What is timed is verified: by the counters and values of the pages, what
the web server sent, and the pixels of the pictures.
"""
