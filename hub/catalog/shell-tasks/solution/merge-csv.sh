set -eu
{
  echo id,name,price
  awk -F, -v OFS=, '
    FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    { row[$column["id"]] = $column["id"] OFS $column["name"] OFS $column["price"] }
    END { for (id in row) print row[id] }' a.csv b.csv | sort -t, -k1,1n
} > all.csv
