"""What does an expression of another dialect mean in Spark: the same, the same in other words, or something else?"""
