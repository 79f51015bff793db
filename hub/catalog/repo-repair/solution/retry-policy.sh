set -eu
sed -i 's|return \[first \* 2\*\*n for n in range(attempts)\]|return [min(first * 2**n, limit) for n in range(attempts - 1)]|' net/policy.py
python3 - <<'END'
import pathlib
path = pathlib.Path("net/retry.py")
text = path.read_text()
path.write_text(text[:text.index("        except BaseException")] + """        except Temporary as fault:
            sleep(max(wait, fault.after or 0))
    return function()
""")
END
