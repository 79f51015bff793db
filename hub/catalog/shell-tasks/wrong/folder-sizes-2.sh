for d in data/*/; do n=${d#data/}; echo "$(find "$d" -type f -printf '%s\n' | awk '{s+=$1} END {print s+0}') ${n%/}"; done | sort -nr > sizes.txt
