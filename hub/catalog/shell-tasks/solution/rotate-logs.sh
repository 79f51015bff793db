set -eu
cat > rotate.sh <<'END'
#!/bin/bash
set -eu
file=$1 keep=$2
[ -s "$file" ] || exit 0
for old in "$file".*; do
  number=${old##*.}
  [[ "$old" == "$file.$number" && "$number" =~ ^[0-9]+$ && "$number" -ge "$keep" ]] && rm -f -- "$old"
done
for ((n = keep - 1; n >= 1; n--)); do
  if [ -e "$file.$n" ]; then mv -- "$file.$n" "$file.$((n + 1))"; fi
done
cp -p -- "$file" "$file.1"
: > "$file"
END
chmod 755 rotate.sh
