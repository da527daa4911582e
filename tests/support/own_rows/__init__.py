"""Rows of tables read from their files by the formats' specifications alone: neither Spark nor lakewarden."""
