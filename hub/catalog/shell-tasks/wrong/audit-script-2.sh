cat > audit.sh <<'END'
#!/bin/bash
cd "$1" || exit 2
found=$(find . \( -perm /o+w -o -perm /u+s \) -not -name . -printf '%P\n' | LC_ALL=C sort)
[ -n "$found" ] || exit 0
echo "$found"; exit 1
END
chmod 755 audit.sh
