set -eu
cat > mirror.sh <<'END'
#!/usr/bin/env python3
import os, shutil, sys

def remove(path):
    """Delete what is at *path*, except files that are kept. Return whether nothing is left."""
    if not os.path.isdir(path) or os.path.islink(path):
        if path.endswith(".local"):
            return False
        os.unlink(path)
        return True
    if all([remove(os.path.join(path, name)) for name in os.listdir(path)]):
        os.rmdir(path)
        return True
    return False

def mirror(source, target):
    if os.path.lexists(target) and not os.path.isdir(target):
        os.unlink(target)
    os.makedirs(target, exist_ok=True)
    names = os.listdir(source)
    for name in set(os.listdir(target)) - set(names):
        remove(os.path.join(target, name))
    for name in names:
        a, b = os.path.join(source, name), os.path.join(target, name)
        if os.path.isdir(a):
            mirror(a, b)
        else:
            if os.path.isdir(b):
                shutil.rmtree(b)
            shutil.copy2(a, b)

mirror(sys.argv[1], sys.argv[2])
END
chmod 755 mirror.sh
