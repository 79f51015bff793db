#!/bin/sh
# The MLflow server of docker-compose.yml: its own database, its artifacts in /data.
set -eu
PGPASSWORD=$(cat "$PASSWORD_FILE")
export PGPASSWORD
# The host that browsers use, without scheme and path.
host=${LLMEVAL_MLFLOW_URL#*://}
host=${host%%/*}
exec mlflow server --host 0.0.0.0 --port 5000 --workers 1 \
    --backend-store-uri postgresql+psycopg://llmeval@postgres:5432/mlflow --artifacts-destination /data/mlartifacts \
    --allowed-hosts "mlflow:5000,localhost:5000,127.0.0.1:5000,$host"
