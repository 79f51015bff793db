cat > pool.sh <<'END'
#!/bin/bash
n=0; bad=0
while IFS= read -r line; do n=$((n + 1)); sh -c "$line" < /dev/null; code=$?; echo "$n $code"; [ $code = 0 ] || bad=1; done < "$1" > results.txt
exit $bad
END
chmod 755 pool.sh
