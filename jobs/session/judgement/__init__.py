"""What a statement does, by its plan, and whether its user may do that. Doors: `Reading`, `Unrecorded`."""
