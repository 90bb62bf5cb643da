"""Files of agents: the folder that tools use, and downloads."""
