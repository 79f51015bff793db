set -eu
while read -r sum name; do
  for mirror in north south; do
    if [ "$(sha256sum < "$mirror/$name" | cut -d' ' -f1)" = "$sum" ]; then cat "$mirror/$name"; break; fi
  done
done < SHA256SUMS > /tmp/backup.tar
mkdir -p restored
tar -xf /tmp/backup.tar -C restored
