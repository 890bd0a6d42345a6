"""Where base relations live: the protocol, and rows held in this process."""
