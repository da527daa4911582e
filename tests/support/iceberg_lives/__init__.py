"""Random lives of one Iceberg table: strangers and lakewarden by turns, judged by a reader of their own."""
