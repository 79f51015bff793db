#!/bin/sh
set -eu
cat > total.sh <<'END'
#!/bin/bash
for file in $(find $1 -type f); do
  total=$((total + $(wc -c < $file)))
done
echo $total
END
chmod 755 total.sh
mkdir example
printf 12345 > 'example/two words.txt'
