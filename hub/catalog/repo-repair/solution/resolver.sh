set -eu
python3 - <<'END'
import pathlib
path = pathlib.Path("packs/resolver.py")
text = path.read_text()
path.write_text(text[:text.index("    order, seen")] + '''    order, done, open_names = [], set(), set()
    for start in wanted:
        if start in done:
            continue
        stack = [(start, iter(needs.get(start, [])))]
        open_names.add(start)
        while stack:
            name, others = stack[-1]
            for other in others:
                if other in open_names:
                    raise Cycle(other)
                if other not in done:
                    open_names.add(other)
                    stack.append((other, iter(needs.get(other, []))))
                    break
            else:
                stack.pop()
                open_names.discard(name)
                done.add(name)
                order.append(name)
    return order
''')
path = pathlib.Path("packs/plan.py")
text = path.read_text()
path.write_text(text[:text.index("    return [")] + '''    missing = {name: [other for other in others if other not in installed] for name, others in needs.items()}
    order = install_order([name for name in wanted if name not in installed], missing)
    return [f"{number}. {name}" for number, name in enumerate(order, 1)]
''')
END
