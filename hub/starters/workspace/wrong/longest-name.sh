sort names.txt | tail -n 1 > longest.txt
