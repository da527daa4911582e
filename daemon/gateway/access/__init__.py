"""Who speaks to the gateway, and what may it do? Doors: `authentication`, `rights`, `refused_statements`."""
