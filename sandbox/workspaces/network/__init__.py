"""Networks of boxes in Docker: services beside a box, and the proxy by which it reaches allowed hosts."""
