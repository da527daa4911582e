"""What does an upsert leave in its table? Written from docs/upsert.md alone, and held against the product."""
