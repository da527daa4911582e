"""How is everything put together? The one place that constructs, lazily."""
