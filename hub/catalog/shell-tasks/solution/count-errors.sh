set -eu
awk '$2 == "ERROR" { sub(":", "", $3); count[$3]++ } END { for (name in count) print name, count[name] }' logs/*.log |
  sort -k2,2nr -k1,1 > errors.txt
