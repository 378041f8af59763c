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

-- Claims a key for a request, and for its turn if it has one. Returns false if the key was used before; then nothing is written. All
-- keys are inserted here. The function runs as the caller.
--
-- `claim` is a key as `IdempotencyKey` in the server writes it; its fingerprint is hexadecimal:
--   {"id": "0192…", "route": "POST /v1/npc-actions", "key": "a1", "fingerprint": "9f86…"}
CREATE FUNCTION claim_key(its_tenant uuid, claim jsonb, its_turn uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO idempotency (tenant_id, id, key, route, fingerprint, state, turn_id)
    VALUES (its_tenant, (claim ->> 'id')::uuid, claim ->> 'key', claim ->> 'route', decode(claim ->> 'fingerprint', 'hex'), 'running', its_turn)
    ON CONFLICT (tenant_id, route, key) DO NOTHING;
    RETURN FOUND;
END $$;
