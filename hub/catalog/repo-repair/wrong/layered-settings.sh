python3 - <<'END'
import pathlib
path = pathlib.Path("settings/merge.py")
text = path.read_text()
path.write_text(text[:text.index("    for key")] + """    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(base.get(key), dict):
            result[key] = merge(base[key], value)
        else:
            result[key] = value
    return result
""")
END
