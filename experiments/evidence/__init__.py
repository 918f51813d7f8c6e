"""Records that back a claim of the package about its own safety, each with the command that makes it again."""
