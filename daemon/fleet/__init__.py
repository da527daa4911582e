"""What does the daemon keep in mind of all tables, and how does it look at them?"""
