"""The papers' figures and tables made again, beside what the papers say."""
