"""Charts as SVG, drawn by the server. Each has a title, a description, axes with units, and a table of its values.

Colours come from classes of the stylesheet, so that charts follow the theme and print.
"""
