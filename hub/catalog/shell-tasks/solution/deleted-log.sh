set -eu
for link in /proc/[0-9]*/fd/*; do
  case "$(readlink "$link" 2> /dev/null)" in
    '/app/out/orders.log (deleted)') cat "$link" > recovered.log ;;
  esac
done
