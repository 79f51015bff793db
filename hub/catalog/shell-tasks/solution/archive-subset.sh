set -eu
cd service
find . -type d -name old -prune -o -type f -name '*.conf' -print0 | tar -czf ../configs.tar.gz --null -T -
