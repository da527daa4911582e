"""How far is it? Plans and steps as they survive in `lakewarden.rollbacks`."""
