set -eu
cat > pool.sh <<'END'
#!/usr/bin/env python3
import subprocess, sys
from concurrent.futures import ThreadPoolExecutor

def run(command):
    code = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL).returncode
    return code if code >= 0 else 128 - code

commands = open(sys.argv[1]).read().splitlines()
with ThreadPoolExecutor(int(sys.argv[2])) as pool:
    codes = list(pool.map(run, commands))
with open("results.txt", "w") as file:
    file.writelines(f"{number} {code}\n" for number, code in enumerate(codes, 1))
sys.exit(1 if any(codes) else 0)
END
chmod 755 pool.sh
