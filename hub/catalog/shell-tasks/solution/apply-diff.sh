set -eu
python3 - <<'END'
import pathlib
main = pathlib.Path("src/main.py")
text = main.read_text()
text = text.replace("    size = int", "    if len(sys.argv) != 2:\n        return usage()\n    size = int")
text = text.replace("print(shapes.circle(size))", "print(round(shapes.circle(size), 2))").replace("prints areas", "prints two areas")
main.write_text(text)
shapes = pathlib.Path("src/lib/shapes.py")
shapes.write_text("import math\n\n\n" + shapes.read_text().replace("3 * r", "math.pi * r") + "\n")
pathlib.Path("src/lib/old.py").unlink()
pathlib.Path("src/lib/units.py").write_text("INCH = 2.54\n# ---- end\n")
END
