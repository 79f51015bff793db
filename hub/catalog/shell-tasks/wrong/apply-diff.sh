sed -i 's/^    size = int/    if len(sys.argv) != 2:\n        return usage()\n    size = int/; s/print(shapes.circle(size))/print(round(shapes.circle(size), 2))/; s/prints areas/prints two areas/' src/main.py
printf 'import math\n\n\ndef square(a):\n    return a * a\n\n\ndef circle(r):\n    return math.pi * r * r\n' > src/lib/shapes.py
printf 'INCH = 2.54\n# ---- end\n' > src/lib/units.py
: > src/lib/old.py
