"""What do the daemon's statements do and answer? Looking, policies and vacuums as SQL asks for them."""
