find notes -name '*.txt' | while read -r f; do iconv -f latin1 -t utf-8 "$f" | sed 's/\r$//' > /tmp/x; cat /tmp/x > "$f"; done
