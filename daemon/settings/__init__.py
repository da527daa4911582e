"""What can be set, to what, and where from?"""
