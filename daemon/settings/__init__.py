"""Which settings are there, what are their values, and where do these come from?"""
