set -eu
python3 - <<'END'
import pathlib
path = pathlib.Path("agenda/busy.py")
path.write_text(path.read_text().replace("in times:", "in sorted((start, end) for start, end in times if start < end):").replace("start < result", "start <= result").replace("(result[-1][0], end)", "(result[-1][0], max(end, result[-1][1]))"))
path = pathlib.Path("agenda/slots.py")
text = path.read_text().replace("end - start > length", "end - start >= length")
a, b = text.index("    for start, end in merged"), text.index("def first_slot")
path.write_text(text[:a] + """    for start, end in merged(times):
        if at < min(start, closes):
            result.append((at, min(start, closes)))
        at = max(at, end)
    if at < closes:
        result.append((at, closes))
    return result


""" + text[b:])
END
