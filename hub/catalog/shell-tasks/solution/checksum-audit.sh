set -eu
export LC_ALL=C
cut -c67- release.sha256 | sort > /tmp/listed
(cd release && find . -type f -printf '%P\n' | sort) > /tmp/present
comm -23 /tmp/listed /tmp/present > missing.txt
comm -13 /tmp/listed /tmp/present > extra.txt
(cd release && sha256sum --ignore-missing -c ../release.sha256 2> /dev/null || true) | sed -n 's/: FAILED$//p' | sort > changed.txt
