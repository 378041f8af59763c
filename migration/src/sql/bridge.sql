-- Connections of frontends, and the mail between the servers that hold them.

-- The newest connection of a session's frontend. `left_at` is when it closed. The row stays for a while, because it says that the
-- frontend's world may have changed unseen.
CREATE TABLE bridge_connection (
    tenant_id uuid NOT NULL,
    session_id uuid NOT NULL,
    connection_id uuid NOT NULL,
    instance bigint NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now(),
    left_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_id),
    CONSTRAINT bridge_connection_session_id_fkey FOREIGN KEY (tenant_id, session_id) REFERENCES session (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('bridge_connection', 'system');
CREATE INDEX bridge_connection_of_server ON bridge_connection (instance) WHERE left_at IS NULL;

-- What the server `asker` wants from a connection that the server `instance` holds. A row lives for seconds.
CREATE TABLE bridge_mail (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    session_id uuid NOT NULL,
    connection_id uuid NOT NULL,
    asker bigint NOT NULL,
    instance bigint NOT NULL,
    kind text NOT NULL,
    data jsonb NOT NULL,
    taken_at timestamptz,
    reply jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT bridge_mail_session_id_fkey FOREIGN KEY (tenant_id, session_id) REFERENCES session (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('bridge_mail', 'system');
CREATE INDEX bridge_mail_for_server ON bridge_mail (instance, created_at) WHERE taken_at IS NULL;
CREATE INDEX bridge_mail_session ON bridge_mail (tenant_id, session_id);

-- Takes the mail for a server, oldest first, each piece once.
CREATE FUNCTION bridge_take(server bigint, rows_max int) RETURNS TABLE (
    tenant_id uuid, id uuid, campaign_id uuid, session_id uuid, connection_id uuid, asker bigint, kind text, data jsonb)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE bridge_mail m SET taken_at = now()
    FROM (SELECT b.tenant_id, b.id FROM bridge_mail b WHERE b.instance = server AND b.taken_at IS NULL
          ORDER BY b.created_at LIMIT rows_max FOR NO KEY UPDATE SKIP LOCKED) new
    WHERE m.tenant_id = new.tenant_id AND m.id = new.id
    RETURNING m.tenant_id, m.id, m.campaign_id, m.session_id, m.connection_id, m.asker, m.kind, m.data
$$;

-- Takes the replies to a server's questions; null for a question whose addressee died together with the frontend's connection.
CREATE FUNCTION bridge_replies(server bigint, tenants uuid[], questions uuid[]) RETURNS TABLE (id uuid, reply jsonb)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    DELETE FROM bridge_mail m USING unnest(tenants, questions) AS q (tenant, question)
    WHERE m.tenant_id = q.tenant AND m.id = q.question AND m.asker = server
      AND (m.reply IS NOT NULL OR NOT server_lives(m.instance))
    RETURNING m.id, m.reply
$$;

-- A server says which of its connections live. Returns those that their session has replaced by another one.
CREATE FUNCTION bridge_seen(server bigint, connections uuid[]) RETURNS SETOF uuid LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    WITH mine AS (
        UPDATE bridge_connection SET seen_at = now()
        WHERE instance = server AND left_at IS NULL AND connection_id = ANY (connections) RETURNING connection_id)
    SELECT c FROM unnest(connections) AS c WHERE NOT EXISTS (SELECT 1 FROM mine WHERE connection_id = c)
$$;

-- Deletes mail that nobody fetched, and connections that ended long ago. A connection of a dead server ended when it was last seen.
CREATE FUNCTION prune_bridge() RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    DELETE FROM bridge_mail WHERE created_at < now() - interval '2 minutes';
    UPDATE bridge_connection SET left_at = seen_at
    WHERE left_at IS NULL AND (seen_at < now() - interval '5 minutes' OR NOT server_lives(instance));
    DELETE FROM bridge_connection WHERE left_at < now() - interval '1 day';
$$;
