"""Records that back a claim of the package about itself, each with the command that makes it again."""
