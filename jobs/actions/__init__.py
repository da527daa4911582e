"""What can be done to a table, when is it due, what does it cost, what allows it? One file per action. Pure."""
