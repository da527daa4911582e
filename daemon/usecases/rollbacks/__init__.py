"""How does a person roll back? Requests in words, waiting, the comparison of rows."""
