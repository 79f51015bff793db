"""Pages that belong to no single app: search, errors, the style guide, and the main navigation."""
