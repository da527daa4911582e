"""What has to be undone, and to which versions? Decided from facts alone. Pure."""
