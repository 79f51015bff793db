set -eu
cat > transfer.py <<'END'
import sqlite3, sys

def main(path, source, target, cents):
    source, target, cents = int(source), int(target), int(cents)
    if cents <= 0 or source == target:
        return "nothing to transfer"
    db = sqlite3.connect(path, timeout=30, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        taken = db.execute("UPDATE account SET cents = cents - ? WHERE id = ? AND cents >= ?", (cents, source, cents))
        if taken.rowcount != 1:
            raise ValueError("no such account, or not enough on it")
        if db.execute("UPDATE account SET cents = cents + ? WHERE id = ?", (cents, target)).rowcount != 1:
            raise ValueError("no such target")
        db.execute("INSERT INTO transfer (source, target, cents) VALUES (?, ?, ?)", (source, target, cents))
    except (ValueError, sqlite3.Error) as error:
        db.execute("ROLLBACK")
        return str(error)
    db.execute("COMMIT")
    return None

sys.exit(main(*sys.argv[1:]))
END
