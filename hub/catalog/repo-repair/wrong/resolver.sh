python3 - <<'END'
import pathlib
path = pathlib.Path("packs/resolver.py")
text = path.read_text()
path.write_text(text[:text.index("    order, seen")] + '''    order = []

    def visit(name, above):
        if name in above:
            raise Cycle(name)
        if name in order:
            return
        for other in needs.get(name, []):
            visit(other, above + (name,))
        order.append(name)

    for name in wanted:
        visit(name, ())
    return order
''')
path = pathlib.Path("packs/plan.py")
text = path.read_text()
path.write_text(text[:text.index("    return [")] + '''    order = [name for name in install_order(wanted, needs) if name not in installed]
    return [f"{number}. {name}" for number, name in enumerate(order, 1)]
''')
END
