"""x"""


def run(job, channel):
    raise NotImplementedError
