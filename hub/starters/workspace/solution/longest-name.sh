set -eu
awk 'length > length(longest) { longest = $0 } END { print longest }' names.txt > longest.txt
