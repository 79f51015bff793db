set -eu
cd photos
for name in *; do
  date=$(sed -n '1s/^taken //p' "$name")
  mv -- "$name" "${date}_$(printf %s "$name" | tr '[:upper:]' '[:lower:]')"
done
