sed -i 's|in times:|in sorted(times):|; s|start < result|start <= result|' agenda/busy.py
sed -i 's|        result.append((at, start))|        if start > at:\n            result.append((at, start))|; s|end - start > length|end - start >= length|; s|    result.append((at, closes))|    if at < closes:\n        result.append((at, closes))|' agenda/slots.py
