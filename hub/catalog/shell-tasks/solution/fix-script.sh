set -eu
cat > total.sh <<'END'
#!/bin/bash
total=0
while IFS= read -r -d '' file; do
  total=$((total + $(wc -c < "$file")))
done < <(find "$1" -type f -print0)
echo "$total"
END
