"""Site plugins: packages that know one web app each, and bring its tools.

Owns reading, finding, installing and setting up plugins. Runs none of their code: the page side is handed to the
browser as a file, and the tools' calls are the server's.
"""
