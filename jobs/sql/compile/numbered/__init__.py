"""Which rows does a statement mean that says so by their number in an order? Pure.

MySQL's ORDER BY ... LIMIT n of a change (`first_rows`), and SQL Server's change of a query behind WITH
(`with_queries`).
"""
