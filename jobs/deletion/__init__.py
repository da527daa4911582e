"""How are files deleted? In bounded batches, each proved and allowed anew."""
