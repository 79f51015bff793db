export LC_ALL=C
cut -c67- release.sha256 | sort > /tmp/l
(cd release && find . -type f -not -name '.*' -not -path '*/.*' -printf '%P\n' | sort) > /tmp/p
comm -13 /tmp/l /tmp/p > extra.txt
cut -c67- release.sha256 | while read -r f; do [ -e "release/$f" ] || echo "$f"; done | sort > missing.txt
(cd release && sha256sum -c ../release.sha256 2>/dev/null) | sed -n 's/: FAILED$//p' | sort > changed.txt
