# The web site and its worker. The sandbox has an image of its own: sandbox/image/Dockerfile.
FROM python:3.11-slim

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
RUN python -m venv /venv
# The extras s3 and traces are part of the image, so that LLMEVAL_ARCHIVES and LLMEVAL_TRACES only need a value.
COPY requirements.txt requirements-s3.txt requirements-traces.txt ./
RUN /venv/bin/pip install -q -r requirements.txt -r requirements-s3.txt -r requirements-traces.txt
COPY . .
# Everything that is written lies in /data; the program itself belongs to root and stays as it is.
# /secrets belongs to the first step of docker-compose.yml.
RUN useradd --uid 10001 --no-create-home llmeval && mkdir -m 700 /data /secrets && chown llmeval /data /secrets
ENV PATH=/venv/bin:$PATH LLMEVAL_VAR=/data HOME=/tmp
USER llmeval
VOLUME /data
EXPOSE 8000
CMD ["sh", "-c", "python manage.py prepare && exec gunicorn llmeval_site.wsgi --config gunicorn.conf.py --bind 0.0.0.0:8000"]
