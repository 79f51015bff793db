set -eu
python3 - <<'END'
import pathlib
path = pathlib.Path("editor/history.py")
text = path.read_text().replace("[state]\n", "[list(state)]\n").replace("return self.states[self.position]", "return list(self.states[self.position])")
a, b, c = text.index("        self.states.append"), text.index("    def undo"), text.index("        self.position -= 1")
path.write_text(text[:a] + """        if state == self.states[self.position]:
            return
        kept = [*self.states[: self.position + 1], list(state)]
        self.states = kept[-(self.limit + 1) :]
        self.position = len(self.states) - 1

""" + text[b:c] + '''        if self.position == 0:
            return False
        self.position -= 1
        return True

    def redo(self):
        """Go one step forward, and return whether there was one."""
        if self.position + 1 >= len(self.states):
            return False
        self.position += 1
        return True
''')
END
