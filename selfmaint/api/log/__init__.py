"""The views brought up to date with a server's log, transaction after transaction."""
