"""What does it take to be a good process? Children that end with us, little memory, a sure end."""
