#!/bin/sh
set -eu
printf 'id,name,price\n10,lamp,25.00\n2,desk,140.00\n7,chair,60.00\n' > a.csv
printf 'price,id,name\n55.00,7,chair\n9.50,31,clip\n1.20,4,pen\n' > b.csv
