(cd data && for d in */; do echo "$(du -sb "$d" | cut -f1) ${d%/}"; done | sort -nr > ../sizes.txt)
