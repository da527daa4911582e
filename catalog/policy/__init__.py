"""What may be done with a table, and how long is what kept? Keys, scopes, requests, roles. Pure."""
