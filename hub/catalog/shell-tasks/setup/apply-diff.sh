#!/bin/sh
set -eu
mkdir -p src/lib
cat > src/main.py <<'END'
"""Entry point."""
# added since the diff was made
# and one more line

import sys
from lib import shapes


def main():
    size = int(sys.argv[1])
    print(shapes.square(size))
    print(shapes.circle(size))


def usage():
    print("usage: main SIZE")
    print("prints areas")


if __name__ == "__main__":
    main()
END
printf 'def square(a):\n    return a * a\n\n\ndef circle(r):\n    return 3 * r * r' > src/lib/shapes.py
printf 'obsolete\n' > src/lib/old.py
touch src/lib/__init__.py
cat > fix.diff <<'END'
--- a/src/main.py
+++ b/src/main.py
@@ -5,5 +5,7 @@
 
 def main():
+    if len(sys.argv) != 2:
+        return usage()
     size = int(sys.argv[1])
     print(shapes.square(size))
-    print(shapes.circle(size))
+    print(round(shapes.circle(size), 2))
@@ -13,3 +15,3 @@
 def usage():
     print("usage: main SIZE")
-    print("prints areas")
+    print("prints two areas")
--- a/src/lib/shapes.py
+++ b/src/lib/shapes.py
@@ -1,6 +1,9 @@
+import math
+
+
 def square(a):
     return a * a
 
 
 def circle(r):
-    return 3 * r * r
\ No newline at end of file
+    return math.pi * r * r
--- a/src/lib/old.py
+++ /dev/null
@@ -1,1 +0,0 @@
-obsolete
--- /dev/null
+++ b/src/lib/units.py
@@ -0,0 +1,2 @@
+INCH = 2.54
+# ---- end
END
