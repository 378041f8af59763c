-- What every other file needs: the role of the server, what makes a table one with rows of tenants, versions and ids.

-- Every pooled connection assumes this role. It belongs to the cluster, not to the database: another database may have made it a moment
-- ago.
DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'tavernkeep_app') THEN
        CREATE ROLE tavernkeep_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;

DO $$ BEGIN
    IF NOT pg_has_role(current_user, 'tavernkeep_app', 'MEMBER') THEN
        EXECUTE format('GRANT tavernkeep_app TO %I', current_user);
    END IF;
END $$;

GRANT USAGE ON SCHEMA public TO tavernkeep_app;

-- Every table with rows of tenants is completed by this: forced row security, grants and, for the world, its triggers. `kind` is what
-- the table holds:
-- `world`: a tenant's world. Its rows have versions and are in the journal. Such a table has the columns `created_at`, `version`,
--   `updated_at`, `extensions` and `external_ref`.
-- `system`: what the server keeps about a tenant. The server writes it; it is not in the journal.
-- `read-only`: what only triggers and functions of the schema's owner write.
--
-- Its primary key begins with `tenant_id`, and so does each of its indexes, unless it serves all tenants. References to other rows of tenants
-- are `(tenant_id, …)`. What is in a campaign belongs to its tenant by the reference to the campaign, without a second check at each write.
CREATE PROCEDURE make_tenant_table(name regclass, kind text) LANGUAGE plpgsql AS $$
DECLARE
    is_own CONSTANT text := $sql$tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid)$sql$;
BEGIN
    CALL make_server_table(name);
    EXECUTE format('CREATE POLICY tenant ON %s TO tavernkeep_app USING (%s) WITH CHECK (%s)', name, is_own, is_own);
    EXECUTE format('GRANT %s ON %s TO tavernkeep_app',
        CASE kind WHEN 'read-only' THEN 'SELECT' ELSE 'SELECT, INSERT, UPDATE, DELETE' END, name);
    IF kind = 'world' THEN
        EXECUTE format('CREATE TRIGGER a_touch BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION touch_row()', name);
        EXECUTE format('CREATE CONSTRAINT TRIGGER b_journal AFTER INSERT OR UPDATE OR DELETE ON %s '
            'DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION journal_row()', name);
    END IF;
END $$;

-- Forces row security, with a policy for the schema's owner. A table that has no more than this is read and written only by the owner's
-- functions: accounts, which belong to no tenant.
CREATE PROCEDURE make_server_table(name regclass) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY owner ON %s TO CURRENT_USER USING (true) WITH CHECK (true)', name);
END $$;

-- A UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits.
CREATE FUNCTION uuid7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
        52, 1), 53, 1), 'hex')::uuid
$$;

-- `uuid7()` for another moment, for rows that are made at once but have an order.
CREATE FUNCTION uuid7_at(moment timestamptz) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0') || substr(replace(uuid7()::text, '-', ''), 13))::uuid
$$;

-- Versions only rise: an update is one more than what it found, whatever the statement says.
CREATE FUNCTION touch_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.updated_at := now();
    RETURN NEW;
END $$;
