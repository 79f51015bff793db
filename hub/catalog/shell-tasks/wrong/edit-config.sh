sed -i 's/^port = 5432/port = 5433/; /^name = shop/a sslmode = require' app.conf
