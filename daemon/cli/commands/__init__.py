"""Which commands are there? One module per group, loaded when it is called."""
