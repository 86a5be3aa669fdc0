"""What `tools/truth` runs, measures and prints."""
