sed -i 's|return total // size + 1|return -(-total // size)|' library/pages.py
sed -i 's|first + width)|first + width - 1)|' library/bar.py
