"""In which way are the rows written that a statement changes? As it asks, its table, or its namespace."""
