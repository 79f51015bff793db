"""Charts as SVG, drawn by the server: with a title, a description, axes with units, and the table behind each.

Colours come from classes of the stylesheet, so that charts follow the theme and print.
"""
