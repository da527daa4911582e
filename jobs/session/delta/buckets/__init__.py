"""How are the rows of a bucketed table read, joined and written bucket by bucket?"""
