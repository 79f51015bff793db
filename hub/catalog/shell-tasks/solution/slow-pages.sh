set -eu
{ cat logs/access.log logs/access.log.1; gzip -dc logs/access.log.2.gz; } |
  awk '$9 == 200 { sub(/\?.*/, "", $7); n[$7]++; sum[$7] += $NF }
    END { for (p in n) if (n[p] >= 3 && sum[p] / n[p] > 500) printf "%s %.0f\n", p, sum[p] / n[p] }' |
  sort -k2,2nr > slow.txt
