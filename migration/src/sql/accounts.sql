-- Functions of accounts, invitations and resets; a comment of two semicolons ends each statement. All run as the schema's owner.
-- Those of a link take the hash of a secret that only its holder has; those of a tenant take the tenant from the caller's
-- transaction. No function gives an account that is there a password but the holder's of a reset, and the user's own.

CREATE OR REPLACE FUNCTION user_for_sign_in(its_email text) RETURNS TABLE (user_id uuid, password_hash text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.password_hash FROM app_user u WHERE u.email_folded = its_email
$$
-- ;;
DROP FUNCTION tenant_users(uuid)
-- ;;
DROP FUNCTION tenant_user_add(uuid, text, text, text, text)
-- ;;
DROP FUNCTION tenant_user_change(uuid, text, text, text)
-- ;;
-- The users of the caller's tenant, and who is invited to it. `tenants` is how many they belong to.
CREATE FUNCTION tenant_people(one uuid, folded text) RETURNS TABLE (
    id uuid, email text, name text, role text, version bigint, tenants bigint, created_at timestamptz,
    updated_at timestamptz, last_sign_in_at timestamptz, status text, expires_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.email, u.name, m.role, m.version, (SELECT count(*) FROM membership o WHERE o.user_id = u.id),
           m.created_at, m.updated_at, u.last_sign_in_at, 'active', NULL::timestamptz
    FROM membership m JOIN app_user u ON u.id = m.user_id
    WHERE m.tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid)
      AND (one IS NULL OR m.user_id = one) AND (folded IS NULL OR u.email_folded = folded)
    UNION ALL
    SELECT i.id, i.email, i.name, i.role, 1, 0, i.created_at, i.created_at, NULL, 'invited', i.expires_at
    FROM invitation i
    WHERE i.tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid)
      AND i.used_at IS NULL AND i.expires_at > now()
      AND (one IS NULL OR i.id = one) AND (folded IS NULL OR i.email_folded = folded)
$$
-- ;;
-- Changes a user of the caller's tenant. The name is the user's alone once they belong to another tenant too. Who is given another
-- role can no longer be reset by a link that was made for the one before.
CREATE FUNCTION tenant_user_change(its_id uuid, its_name text, its_role text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE membership SET role = its_role
    WHERE user_id = its_id AND tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM password_reset WHERE user_id = its_id AND tenant_id IS NOT NULL;
    IF (SELECT count(*) FROM membership WHERE user_id = its_id) = 1 THEN
        UPDATE app_user SET name = its_name, updated_at = now() WHERE id = its_id;
    END IF;
END $$
-- ;;
-- Asks somebody to the caller's tenant, in place of an invitation of the same address that is open: 'made', 'member' if they belong
-- to it already, or 'full'. What it answers does not depend on whether the address has an account elsewhere.
CREATE FUNCTION invitation_make(its_id uuid, its_hash bytea, its_email text, folded text, its_name text, its_role text,
    its_author uuid, seconds int) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    here uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
BEGIN
    IF EXISTS (SELECT FROM membership m JOIN app_user u ON u.id = m.user_id
               WHERE m.tenant_id = here AND u.email_folded = folded) THEN
        RETURN 'member';
    END IF;
    DELETE FROM invitation
    WHERE tenant_id = here AND (used_at < now() - interval '30 days' OR (used_at IS NULL AND expires_at <= now()));
    IF (SELECT count(*) FROM invitation WHERE tenant_id = here AND used_at IS NULL AND email_folded <> folded) >= 1000 THEN
        RETURN 'full';
    END IF;
    INSERT INTO invitation (tenant_id, id, hash, email, email_folded, name, role, invited_by, expires_at)
    VALUES (here, its_id, its_hash, its_email, folded, its_name, its_role, its_author, now() + seconds * interval '1 second')
    ON CONFLICT (tenant_id, email_folded) WHERE used_at IS NULL DO UPDATE
    SET id = excluded.id, hash = excluded.hash, email = excluded.email, name = excluded.name, role = excluded.role,
        invited_by = excluded.invited_by, expires_at = excluded.expires_at, created_at = now();
    RETURN 'made';
END $$
-- ;;
CREATE FUNCTION invitation_withdraw(its_id uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    DELETE FROM invitation WHERE id = its_id AND used_at IS NULL
        AND tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid
$$
-- ;;
-- What a link that is still good asks to.
CREATE FUNCTION invitation_of(its_hash bytea) RETURNS TABLE (
    tenant_id uuid, tenant_name text, email text, email_folded text, name text, role text, has_account boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT i.tenant_id, t.name, i.email, i.email_folded, i.name, i.role,
           EXISTS (SELECT FROM app_user u WHERE u.email_folded = i.email_folded)
    FROM invitation i JOIN tenant t ON t.tenant_id = i.tenant_id
    WHERE i.hash = its_hash AND i.used_at IS NULL AND i.expires_at > now()
$$
-- ;;
-- A link's holder comes with a new account; false if the link is no longer good. An address that has an account by now breaks
-- `app_user_folded_key`.
CREATE FUNCTION invitation_accept_new(its_hash bytea, its_user uuid, its_name text, its_password_hash text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    asked invitation;
BEGIN
    UPDATE invitation SET used_at = now() WHERE hash = its_hash AND used_at IS NULL AND expires_at > now()
    RETURNING * INTO asked;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO app_user (id, email, email_folded, name, password_hash)
    VALUES (its_user, asked.email, asked.email_folded, its_name, its_password_hash);
    INSERT INTO membership (tenant_id, user_id, role) VALUES (asked.tenant_id, its_user, asked.role);
    RETURN true;
END $$
-- ;;
-- The holder of a link comes with the account that they are signed in with, if it is the link's address'. Every other session of
-- the account ends, and no tenant's reset of it is good any more: from now on it is another tenant's door too. The user's row is held
-- against a reset, which holds it as well.
CREATE FUNCTION invitation_accept(its_hash bytea, session_hash bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    asked invitation;
    who app_user;
BEGIN
    SELECT u.* INTO who FROM app_user u
    WHERE u.id = (SELECT s.user_id FROM editor_session s WHERE s.hash = session_hash AND s.expires_at > now()) FOR UPDATE;
    IF who.id IS NULL OR NOT EXISTS (SELECT FROM editor_session WHERE hash = session_hash) THEN
        RETURN false;
    END IF;
    UPDATE invitation SET used_at = now()
    WHERE hash = its_hash AND email_folded = who.email_folded AND used_at IS NULL AND expires_at > now()
    RETURNING * INTO asked;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO membership (tenant_id, user_id, role) VALUES (asked.tenant_id, who.id, asked.role) ON CONFLICT DO NOTHING;
    DELETE FROM password_reset WHERE user_id = who.id AND tenant_id IS NOT NULL;
    DELETE FROM editor_session WHERE user_id = who.id AND hash <> session_hash;
    UPDATE editor_session SET tenant_id = asked.tenant_id WHERE hash = session_hash;
    RETURN true;
END $$
-- ;;
-- Makes a reset of a user of the caller's tenant; false if the account is also another tenant's, or none of this one's.
CREATE FUNCTION reset_make(its_user uuid, its_hash bytea, seconds int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    here uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
BEGIN
    IF NOT EXISTS (SELECT FROM membership WHERE user_id = its_user AND tenant_id = here)
       OR EXISTS (SELECT FROM membership WHERE user_id = its_user AND tenant_id <> here) THEN
        RETURN false;
    END IF;
    INSERT INTO password_reset (user_id, hash, tenant_id, expires_at)
    VALUES (its_user, its_hash, here, now() + seconds * interval '1 second')
    ON CONFLICT (user_id) DO UPDATE
    SET hash = excluded.hash, tenant_id = excluded.tenant_id, expires_at = excluded.expires_at;
    RETURN true;
END $$
-- ;;
-- Whose account a link that is still good resets. A tenant's link is good only while the account is that tenant's alone.
CREATE FUNCTION reset_of(its_hash bytea) RETURNS TABLE (user_id uuid, email text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.email FROM password_reset r JOIN app_user u ON u.id = r.user_id
    WHERE r.hash = its_hash AND r.expires_at > now()
      AND (r.tenant_id IS NULL OR (
          EXISTS (SELECT FROM membership m WHERE m.user_id = u.id AND m.tenant_id = r.tenant_id)
          AND NOT EXISTS (SELECT FROM membership m WHERE m.user_id = u.id AND m.tenant_id <> r.tenant_id)))
$$
-- ;;
-- Uses a link once: the account has a new password, and no session.
CREATE FUNCTION reset_use(its_hash bytea, new_password_hash text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    who uuid := (SELECT user_id FROM reset_of(its_hash));
BEGIN
    PERFORM FROM app_user WHERE id = who FOR UPDATE;
    -- What it was before the row was held is asked again.
    who := (SELECT user_id FROM reset_of(its_hash));
    IF who IS NULL THEN
        RETURN false;
    END IF;
    DELETE FROM password_reset WHERE user_id = who AND hash = its_hash;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE app_user SET password_hash = new_password_hash, updated_at = now() WHERE id = who;
    DELETE FROM editor_session WHERE user_id = who;
    RETURN true;
END $$
-- ;;
REVOKE ALL ON FUNCTION tenant_people, tenant_user_change, invitation_make, invitation_withdraw, invitation_of,
    invitation_accept_new, invitation_accept, reset_make, reset_of, reset_use FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION tenant_people, tenant_user_change, invitation_make, invitation_withdraw, invitation_of,
    invitation_accept_new, invitation_accept, reset_make, reset_of, reset_use TO tavernkeep_app
