"""How is the deployment tested? Tools from registries, the chart rendered and judged, a real node."""
