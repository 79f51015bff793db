#!/bin/sh
set -eu
mkdir photos
printf 'taken 2023-07-14\nsea\n' > 'photos/Beach 1.JPG'
printf 'taken 2023-07-15\nsand\n' > 'photos/Beach 2.JPG'
printf 'taken 2022-12-24\nsnow\n' > photos/IMG_0007.jpg
printf 'taken 2021-01-01\nfire\n' > "photos/New Year's Eve.PNG"
