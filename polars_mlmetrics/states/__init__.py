"""States as files: made, written, read, and kept up to date in a folder."""
