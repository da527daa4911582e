"""Which actions are there? When is each due, what does it cost, and what permits it? One file per action. Pure."""
