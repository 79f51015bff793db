set -eu
sed -i 's|return total // size + 1|return max(1, -(-total // size))|; s|    if number > page_count|    if number < 1 or number > page_count|' library/pages.py
sed -i 's|first = max(1, current - width // 2)|first = max(1, min(current - width // 2, pages - width + 1))|; s|first + width)|first + width - 1)|' library/bar.py
