"""What an agent's context pays: the tokens of the catalogue and of snapshots, next to other servers."""
