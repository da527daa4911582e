"""What becomes of tables whose disk is away, and of a catalog that is lost, damaged and mended?"""
