cat > rotate.sh <<'END'
#!/bin/bash
[ -s "$1" ] || exit 0
for n in $(seq $(($2 - 1)) -1 1); do if [ -e "$1.$n" ]; then mv "$1.$n" "$1.$((n + 1))"; fi; done
mv "$1" "$1.1"; touch "$1"; chmod --reference="$1.1" "$1"
END
chmod 755 rotate.sh
