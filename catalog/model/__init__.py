"""What is a row, and what is it made of? Frozen values of the system tables and the words in them. Pure."""
