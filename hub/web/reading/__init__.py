"""Texts of models, datasets and bundles as safe HTML: Markdown, highlighted code, tool calls, marked spans.

Every function escapes what it is given. The HTML has no script, no style attribute and loads nothing.
"""
