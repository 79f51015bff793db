python3 - <<'END'
import pathlib
path = pathlib.Path("mail/fill.py")
text = path.read_text()
path.write_text(text[:text.index("    for name")] + """    for name in sorted(values, reverse=True):
        template = template.replace("{{ " + name + " }}", str(values[name]))
    if "{{ a }}" in template:
        raise KeyError("a")
    return template
""")
path = pathlib.Path("mail/html.py")
path.write_text(path.read_text().replace("return escape(fill(template, {name: escape(value) for name, value in values.items()}))", "return Safe(fill(template, {name: escape(value) for name, value in values.items()}))"))
END
