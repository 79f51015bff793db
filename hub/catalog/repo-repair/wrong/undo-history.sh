python3 - <<'END'
import pathlib
path = pathlib.Path("editor/history.py")
text = path.read_text()
text = text.replace("        self.states.append(state)\n", "        del self.states[self.position + 1 :]\n        self.states.append(state)\n        del self.states[: -self.limit]\n").replace("        self.position += 1\n\n    def undo", "        self.position = len(self.states) - 1\n\n    def undo")
text = text.replace("        self.position -= 1\n", "        if not self.position:\n            return False\n        self.position -= 1\n").replace("        if self.position < len(self.states):\n            self.position += 1\n", "        if self.position >= len(self.states) - 1:\n            return False\n        self.position += 1\n")
path.write_text(text)
path = pathlib.Path("editor/document.py")
path.write_text(path.read_text().replace("lines = self.lines\n", "lines = list(self.lines)\n"))
END
