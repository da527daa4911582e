"""Which version's content depends on which others? A compact graph of versions. Pure."""
