"""How do users share the gateway? Places and turns, and room for results.

Doors: `shares`, `space`.
"""
