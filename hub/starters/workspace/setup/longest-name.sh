#!/bin/sh
set -eu
printf 'Ann\nBartholomew\nCarla\n' > names.txt
