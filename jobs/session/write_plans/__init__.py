"""Which plan does a write stand for, and what is it made of?"""
