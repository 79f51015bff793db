set -eu
python3 - <<'END'
import pathlib
path = pathlib.Path("settings/merge.py")
text = path.read_text()
text = text.replace('"""Merges settings."""\n', '"""Merges settings."""\n\nfrom copy import deepcopy\n')
path.write_text(text[:text.index("    for key")] + """    result = deepcopy(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            result[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            result[key] = deepcopy(value)
    return result
""")
path = pathlib.Path("settings/profile.py")
path.write_text(path.read_text().replace("result = DEFAULTS", "result = merge(DEFAULTS, {})"))
END
