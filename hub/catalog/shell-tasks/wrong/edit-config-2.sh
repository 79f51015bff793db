python3 - <<'END'
import configparser
c = configparser.ConfigParser(); c.read("app.conf")
c["database"]["port"] = "5433"; c["database"]["sslmode"] = "require"
c.write(open("app.conf", "w"))
END
