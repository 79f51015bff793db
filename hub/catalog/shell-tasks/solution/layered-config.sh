set -eu
cat conf/*.ini | awk '
  /^[ \t]*([;#]|$)/ { next }
  /^[ \t]*\[/ { gsub(/^[ \t]*\[|\][ \t]*$/, ""); section = $0; next }
  { i = index($0, "="); key = substr($0, 1, i - 1); value = substr($0, i + 1)
    gsub(/^[ \t]+|[ \t]+$/, "", key); gsub(/^[ \t]+|[ \t]+$/, "", value)
    name = section "." tolower(key)
    if (value == "") delete all[name]; else all[name] = value }
  END { for (name in all) print name "=" all[name] }' | LC_ALL=C sort > effective.txt
