cat > mirror.sh <<'END'
#!/bin/bash
rm -rf "$2"; mkdir -p "$2"; cp -a "$1/." "$2/"
END
chmod 755 mirror.sh
