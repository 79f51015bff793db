cat > rotate.sh <<'END'
#!/bin/bash
[ -s "$1" ] || exit 0
for n in $(seq 1 $(($2 - 1))); do [ -e "$1.$n" ] && mv "$1.$n" "$1.$((n + 1))"; done
mv "$1" "$1.1"; touch "$1"; chmod 640 "$1"
END
chmod 755 rotate.sh
