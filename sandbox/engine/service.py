"""x"""


class Service:
    pass
