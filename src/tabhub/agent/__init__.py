"""The agent: a model that uses the hub's tools.

Owns how tools are told to a model, how its calls are read, and the loop between the two. Which tools there are and how
they are run is a toolbox's, which the loop is handed.
"""
