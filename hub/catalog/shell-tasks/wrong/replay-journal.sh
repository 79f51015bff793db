cat snapshot.txt <(sed 's/^/x /' /dev/null) > /dev/null
{ sed 's/^/set /' snapshot.txt; cat journal.log; echo; } | awk '$1 == "set" { k = $2; sub(/^set [^ ]+ /, ""); v[k] = $0 } $1 == "del" { delete v[$2] } END { for (k in v) print k, v[k] }' | LC_ALL=C sort > state.txt
