"""What may a statement of a session do whose user is not trusted with everything?"""
