set -eu
python3 - <<'END'
state = dict(line.rstrip("\n").split(" ", 1) for line in open("snapshot.txt"))
def carry_out(operation):
    word, _, rest = operation.partition(" ")
    if word == "set":
        key, _, value = rest.partition(" ")
        state[key] = value
    elif word == "del":
        state.pop(rest, None)
pending = None
for line in open("journal.log"):
    if not line.endswith("\n"):
        break
    line = line[:-1]
    if line == "begin":
        pending = []
    elif line in ("commit", "abort"):
        if line == "commit":
            for operation in pending:
                carry_out(operation)
        pending = None
    elif pending is not None:
        pending.append(line)
    else:
        carry_out(line)
with open("state.txt", "w") as file:
    file.writelines(f"{key} {state[key]}\n" for key in sorted(state))
END
