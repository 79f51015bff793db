"""Settings of the web server, for every way to start it: `manage.py serve`, the container, `gunicorn` by hand."""

workers = 2
threads = 8
# Trainers and browsers think between two requests. The default of 2 s closes the connection meanwhile, and a client
# that sends its next request at that moment gets a reset.
keepalive = 75
