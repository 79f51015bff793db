#!/bin/sh
set -eu
mkdir logs
for day in 01 02 03; do
  i=0
  while [ $i -lt 12 ]; do
    for service in cart search mail stock; do
      level=INFO
      case "$service$day" in
        cart01|cart03) [ $((i % 3)) -eq 0 ] && level=ERROR ;;
        mail02) [ $((i % 4)) -eq 0 ] && level=ERROR ;;
        stock03) [ $((i % 4)) -eq 1 ] && level=ERROR ;;
      esac
      echo "2024-03-${day}T10:$((10 + i)):00 $level $service: request $i of ERROR report"
      i=$((i + 0))
    done
    i=$((i + 1))
  done > "logs/2024-03-$day.log"
done
