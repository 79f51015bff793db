set -eu
find project -type f -perm -u+x -exec chmod 770 {} +
find project -type f ! -perm -u+x -exec chmod 660 {} +
find project -type d -exec chmod 2770 {} +
