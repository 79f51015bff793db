set -eu
python3 - <<'END'
import pathlib
path = pathlib.Path("mail/fill.py")
text = path.read_text().replace('not matter."""\n', 'not matter."""\n\nimport re\n', 1)
path.write_text(text[:text.index("    for name")] + r"""    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: str(values[match[1]]), template)
""")
path = pathlib.Path("mail/html.py")
text = path.read_text()
path.write_text(text[:text.index("    return escape")] + """    safe = {name: value if isinstance(value, Safe) else escape(str(value)) for name, value in values.items()}
    return Safe(fill(template, safe))
""")
END
