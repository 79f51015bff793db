cat > pool.sh <<'END'
#!/bin/bash
: > results.txt
n=0
while IFS= read -r line; do
  n=$((n + 1))
  while [ "$(jobs -rp | wc -l)" -ge "$2" ]; do wait -n; done
  { sh -c "$line" < /dev/null; echo "$n $?" >> results.txt; } &
done < "$1"
wait
! grep -qv ' 0$' results.txt
END
chmod 755 pool.sh
