set -eu
find store -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | awk '{ hash = $1; if (seen[hash]++) { sub(/^[^ ]+  /, ""); print } }' |
  while IFS= read -r path; do rm -- "$path"; done
find store -mindepth 1 -type d -empty -delete
