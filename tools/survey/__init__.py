"""What `tools/house` measures, a module a question."""
