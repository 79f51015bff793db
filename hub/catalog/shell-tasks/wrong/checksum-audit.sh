export LC_ALL=C
(cd release && sha256sum -c ../release.sha256 2>/dev/null) | sed -n 's/: FAILED.*//p' | sort > changed.txt
cut -c67- release.sha256 | while read -r f; do [ -e "release/$f" ] || echo "$f"; done | sort > missing.txt
(cd release && find . -type f -printf '%P\n') | while read -r f; do grep -q "  $f\$" release.sha256 || echo "$f"; done | sort > extra.txt
