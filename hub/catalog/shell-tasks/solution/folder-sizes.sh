set -eu
for folder in data/*/; do
  name=${folder#data/}
  find "$folder" -type f -printf '%i %s\n' | sort -u | awk -v name="${name%/}" '{ sum += $2 } END { print sum + 0, name }'
done | sort -k1,1nr > sizes.txt
