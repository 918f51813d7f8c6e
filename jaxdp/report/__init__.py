"""Pictures and self-contained HTML pages of released or public values."""
