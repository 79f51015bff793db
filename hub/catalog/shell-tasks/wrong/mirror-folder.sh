cat > mirror.sh <<'END'
#!/bin/bash
mkdir -p "$2"; cp -a "$1/." "$2/"
END
chmod 755 mirror.sh
