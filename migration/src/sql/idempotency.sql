-- Idempotency keys: a request that is sent again gets the answer of the first.

CREATE TABLE idempotency (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    key text NOT NULL,
    route text NOT NULL,
    fingerprint bytea NOT NULL,
    state text NOT NULL,
    status int,
    headers jsonb,
    body bytea,
    turn_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CALL make_tenant_table('idempotency', 'system');
CREATE INDEX idempotency_age ON idempotency (tenant_id, created_at);
CREATE INDEX idempotency_turn ON idempotency (tenant_id, turn_id) WHERE turn_id IS NOT NULL;
CREATE UNIQUE INDEX idempotency_key ON idempotency (tenant_id, route, key);
