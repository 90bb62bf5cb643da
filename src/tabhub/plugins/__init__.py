"""Site plugins: packages with the tools of one web app.

Owns reading, finding, installing and configuring plugins. Their page code is written to a file for the browser; calls
of their tools are in `calls/sources`.
"""
