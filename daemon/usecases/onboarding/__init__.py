"""How do many tables come under management at once? Lists and patterns of them, batches, and how far it is.

Doors: `lists` (files to what is wanted), `patterns` (globs to places), `registrations` (batch by batch), `report`.
"""
