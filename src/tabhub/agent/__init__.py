"""The agent: a model that uses the hub's tools.

Owns the prompt, the parsing of the model's calls, and the loop between the two. A toolbox lists and runs the tools.
"""
