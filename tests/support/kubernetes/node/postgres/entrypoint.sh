#!/bin/sh
# Make the database where there is none, then be the server.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --encoding=UTF8 --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust --auth-host=scram-sha-256 >/dev/null
    pg_ctl --silent --wait --options="-c listen_addresses=" start >/dev/null
    createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl --silent --wait stop
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
fi
exec postgres -c listen_addresses='*'
