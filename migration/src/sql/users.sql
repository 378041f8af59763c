-- Functions of the editor's users; a comment of two semicolons ends each statement. All run as the schema's owner.
-- Those of a session take the hash of a secret that only its browser holds; those of a tenant take the tenant from the
-- caller's transaction.

CREATE FUNCTION user_for_sign_in(its_email text) RETURNS TABLE (user_id uuid, password_hash text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.password_hash FROM app_user u WHERE lower(u.email) = lower(its_email)
$$
-- ;;
-- A session begins: what the browser held before ends, the oldest go beyond twenty, and so do all that have expired. The row of the
-- user is held from the look at their password on: if it is another than was verified, nothing begins; if it changes after this,
-- that ends this session as well.
CREATE FUNCTION session_begin(its_user uuid, its_hash bytea, old_hash bytea, seconds int, verified_hash text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE app_user SET last_sign_in_at = now() WHERE id = its_user AND password_hash = verified_hash;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM editor_session WHERE hash = old_hash OR expires_at < now() OR hash IN (
        SELECT s.hash FROM editor_session s WHERE s.user_id = its_user ORDER BY s.created_at DESC OFFSET 19);
    INSERT INTO editor_session (hash, user_id, tenant_id, expires_at)
    VALUES (its_hash, its_user, (SELECT m.tenant_id FROM membership m WHERE m.user_id = its_user ORDER BY m.created_at LIMIT 1),
            now() + seconds * interval '1 second');
    RETURN true;
END $$
-- ;;
-- Who holds a live session, where, and as what: another of their tenants if they no longer belong to that one. That it was seen
-- is noted once a minute. Without a membership there is no role.
CREATE FUNCTION session_of(its_hash bytea, idle_seconds int) RETURNS TABLE (
    user_id uuid, email text, name text, role text, tenants bigint, tenant_id uuid, tenant_name text,
    limits jsonb, settings jsonb, tenant_version bigint, origins text[], llm_api_key bytea, switched_off text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE editor_session s SET seen_at = now()
    WHERE s.hash = its_hash AND s.seen_at < now() - interval '1 minute' AND s.expires_at > now()
      AND s.seen_at > now() - idle_seconds * interval '1 second';
    RETURN QUERY SELECT u.id, u.email, u.name, m.role,
        (SELECT count(*) FROM membership o WHERE o.user_id = u.id), m.tenant_id, t.name,
        t.limits, t.settings, t.version, t.origins, t.llm_api_key,
        ARRAY(SELECT o.name FROM operator_switch o WHERE NOT o.enabled)
    FROM editor_session s JOIN app_user u ON u.id = s.user_id
    LEFT JOIN LATERAL (SELECT * FROM membership b WHERE b.user_id = s.user_id
                       ORDER BY b.tenant_id IS NOT DISTINCT FROM s.tenant_id DESC, b.created_at LIMIT 1) m ON true
    LEFT JOIN tenant t ON t.tenant_id = m.tenant_id
    WHERE s.hash = its_hash AND s.expires_at > now() AND s.seen_at > now() - idle_seconds * interval '1 second';
END $$
-- ;;
-- Where the holder of a session belongs.
CREATE FUNCTION session_tenants(its_hash bytea) RETURNS TABLE (tenant_id uuid, name text, role text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT t.tenant_id, t.name, m.role FROM editor_session s JOIN membership m ON m.user_id = s.user_id
    JOIN tenant t ON t.tenant_id = m.tenant_id WHERE s.hash = its_hash AND s.expires_at > now() ORDER BY t.name LIMIT 200
$$
-- ;;
-- Goes to another of the user's tenants; whether it is one.
CREATE FUNCTION session_choose(its_hash bytea, its_tenant uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE editor_session s SET tenant_id = its_tenant
    WHERE s.hash = its_hash AND EXISTS (SELECT 1 FROM membership m WHERE m.user_id = s.user_id AND m.tenant_id = its_tenant);
    RETURN FOUND;
END $$
-- ;;
-- Ends a session, or all of its user.
CREATE FUNCTION session_end(its_hash bytea, everywhere boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    DELETE FROM editor_session WHERE hash = its_hash
        OR (everywhere AND user_id = (SELECT s.user_id FROM editor_session s WHERE s.hash = its_hash))
$$
-- ;;
CREATE FUNCTION session_password(its_hash bytea) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.password_hash FROM editor_session s JOIN app_user u ON u.id = s.user_id
    WHERE s.hash = its_hash AND s.expires_at > now()
$$
-- ;;
-- A user's own new password; every other session of theirs ends.
CREATE FUNCTION session_set_password(its_hash bytea, new_password_hash text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    who uuid := (SELECT user_id FROM editor_session WHERE hash = its_hash AND expires_at > now());
BEGIN
    UPDATE app_user SET password_hash = new_password_hash, updated_at = now() WHERE id = who;
    DELETE FROM editor_session WHERE user_id = who AND hash <> its_hash;
END $$
-- ;;
-- The users of the caller's tenant. `tenants` is how many they belong to.
CREATE FUNCTION tenant_users(one uuid) RETURNS TABLE (
    id uuid, email text, name text, role text, version bigint, tenants bigint, created_at timestamptz,
    updated_at timestamptz, last_sign_in_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.email, u.name, m.role, m.version, (SELECT count(*) FROM membership o WHERE o.user_id = u.id),
           m.created_at, m.updated_at, u.last_sign_in_at
    FROM membership m JOIN app_user u ON u.id = m.user_id
    WHERE m.tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid) AND (one IS NULL OR m.user_id = one)
$$
-- ;;
-- Holds the tenant's memberships until the transaction ends, so that two changes cannot take away the last owners.
CREATE FUNCTION tenant_users_hold() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT 1 FROM membership
    WHERE tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid) FOR UPDATE
$$
-- ;;
-- A new user of the caller's tenant. An email that is known breaks `app_user_email_key`.
CREATE FUNCTION tenant_user_add(its_id uuid, its_email text, its_name text, its_password_hash text, its_role text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    INSERT INTO app_user (id, email, name, password_hash) VALUES (its_id, its_email, its_name, its_password_hash);
    INSERT INTO membership (tenant_id, user_id, role)
    VALUES (nullif(current_setting('app.tenant_id', true), '')::uuid, its_id, its_role);
END $$
-- ;;
-- Changes a user of the caller's tenant. Name and password are the user's alone once they belong to another tenant too; a new
-- password ends every session.
CREATE FUNCTION tenant_user_change(its_id uuid, its_name text, its_role text, its_password_hash text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE membership SET role = its_role
    WHERE user_id = its_id AND tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid;
    IF FOUND AND (SELECT count(*) FROM membership WHERE user_id = its_id) = 1 THEN
        UPDATE app_user SET name = its_name, password_hash = coalesce(its_password_hash, password_hash), updated_at = now()
        WHERE id = its_id;
        IF its_password_hash IS NOT NULL THEN
            DELETE FROM editor_session WHERE user_id = its_id;
        END IF;
    END IF;
END $$
-- ;;
-- A user leaves the caller's tenant; who belongs nowhere is forgotten.
CREATE FUNCTION tenant_user_remove(its_id uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    here uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
BEGIN
    DELETE FROM membership WHERE user_id = its_id AND tenant_id = here;
    IF FOUND THEN
        DELETE FROM app_user WHERE id = its_id AND NOT EXISTS (SELECT 1 FROM membership WHERE user_id = its_id);
    END IF;
END $$
-- ;;
ALTER TABLE journal ADD COLUMN user_id uuid
-- ;;
REVOKE ALL ON FUNCTION user_for_sign_in, session_begin, session_of, session_tenants, session_choose, session_end,
    session_password, session_set_password, tenant_users, tenant_users_hold, tenant_user_add, tenant_user_change,
    tenant_user_remove FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION user_for_sign_in, session_begin, session_of, session_tenants, session_choose, session_end,
    session_password, session_set_password, tenant_users, tenant_users_hold, tenant_user_add, tenant_user_change,
    tenant_user_remove TO tavernkeep_app
