-- Functions of the second factor; a comment of two semicolons ends each statement. All run as the schema's owner. A code counts once:
-- the step of a generator's code only rises, and a recovery code is deleted.

DROP FUNCTION user_for_sign_in(text)
-- ;;
CREATE FUNCTION user_for_sign_in(folded text) RETURNS TABLE (user_id uuid, password_hash text, has_second_factor boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.password_hash, u.totp_secret IS NOT NULL FROM app_user u WHERE u.email_folded = folded
$$
-- ;;
DROP FUNCTION session_of(bytea, int)
-- ;;
CREATE FUNCTION session_of(its_hash bytea, idle_seconds int) RETURNS TABLE (
    user_id uuid, email text, name text, role text, tenants bigint, tenant_id uuid, tenant_name text,
    limits jsonb, settings jsonb, tenant_version bigint, origins text[], llm_api_key bytea, switched_off text[], has_second_factor boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE editor_session s SET seen_at = now()
    WHERE s.hash = its_hash AND s.seen_at < now() - interval '1 minute' AND s.expires_at > now()
      AND s.seen_at > now() - idle_seconds * interval '1 second';
    RETURN QUERY SELECT u.id, u.email, u.name, m.role,
        (SELECT count(*) FROM membership o WHERE o.user_id = u.id), m.tenant_id, t.name,
        t.limits, t.settings, t.version, t.origins, t.llm_api_key,
        ARRAY(SELECT o.name FROM operator_switch o WHERE NOT o.enabled), u.totp_secret IS NOT NULL
    FROM editor_session s JOIN app_user u ON u.id = s.user_id
    LEFT JOIN LATERAL (SELECT * FROM membership b WHERE b.user_id = s.user_id
                       ORDER BY b.tenant_id IS NOT DISTINCT FROM s.tenant_id DESC, b.created_at LIMIT 1) m ON true
    LEFT JOIN tenant t ON t.tenant_id = m.tenant_id
    WHERE s.hash = its_hash AND s.expires_at > now() AND s.seen_at > now() - idle_seconds * interval '1 second';
END $$
-- ;;
-- A session begins for whoever showed all that the account asks: without a second factor the password alone. As in its first form,
-- the row of the user is held from the look at their password on.
CREATE OR REPLACE FUNCTION session_begin(its_user uuid, its_hash bytea, old_hash bytea, seconds int, verified_hash text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM FROM app_user WHERE id = its_user FOR UPDATE;
    IF EXISTS (SELECT FROM app_user WHERE id = its_user AND totp_secret IS NOT NULL) THEN
        RETURN false;
    END IF;
    RETURN session_begin_whole(its_user, its_hash, old_hash, seconds, verified_hash);
END $$
-- ;;
CREATE FUNCTION session_begin_whole(its_user uuid, its_hash bytea, old_hash bytea, seconds int, verified_hash text) RETURNS boolean
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
-- Whoever knows the password of an account with a second factor has ten minutes to show it. The oldest go beyond twenty.
CREATE FUNCTION half_begin(its_user uuid, its_hash bytea, old_hash bytea, verified_hash text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM FROM app_user WHERE id = its_user AND password_hash = verified_hash FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM editor_session WHERE hash = old_hash;
    DELETE FROM half_sign_in WHERE hash = old_hash OR expires_at < now() OR hash IN (
        SELECT h.hash FROM half_sign_in h WHERE h.user_id = its_user ORDER BY h.created_at DESC OFFSET 19);
    INSERT INTO half_sign_in (hash, user_id, password_hash, expires_at)
    VALUES (its_hash, its_user, verified_hash, now() + interval '10 minutes');
    RETURN true;
END $$
-- ;;
CREATE FUNCTION half_of(its_hash bytea) RETURNS TABLE (user_id uuid, email_folded text, totp_secret bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.email_folded, u.totp_secret FROM half_sign_in h JOIN app_user u ON u.id = h.user_id
    WHERE h.hash = its_hash AND h.expires_at > now() AND h.password_hash = u.password_hash AND u.totp_secret IS NOT NULL
$$
-- ;;
-- Takes a code of somebody's, once: the step of a generator's, or the hash of a recovery code.
CREATE FUNCTION code_take(its_user uuid, step bigint, recovery bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF step IS NOT NULL THEN
        UPDATE app_user SET totp_step = step WHERE id = its_user AND totp_step < step AND totp_secret IS NOT NULL;
    ELSE
        DELETE FROM recovery_code WHERE user_id = its_user AND hash = recovery;
    END IF;
    RETURN FOUND;
END $$
-- ;;
-- The other half: a session in place of it, if the code was taken.
CREATE FUNCTION half_finish(its_hash bytea, step bigint, recovery bytea, new_hash bytea, seconds int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    half half_sign_in;
BEGIN
    SELECT * INTO half FROM half_sign_in WHERE hash = its_hash AND expires_at > now() FOR UPDATE;
    IF NOT FOUND OR NOT code_take(half.user_id, step, recovery) THEN
        RETURN false;
    END IF;
    DELETE FROM half_sign_in WHERE hash = its_hash;
    RETURN session_begin_whole(half.user_id, new_hash, its_hash, seconds, half.password_hash);
END $$
-- ;;
-- The second factor of a session's user.
CREATE FUNCTION second_factor_of(session_hash bytea) RETURNS TABLE (
    user_id uuid, totp_secret bytea, totp_pending bytea, codes_left bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.totp_secret, u.totp_pending, (SELECT count(*) FROM recovery_code c WHERE c.user_id = u.id)
    FROM editor_session s JOIN app_user u ON u.id = s.user_id WHERE s.hash = session_hash AND s.expires_at > now()
$$
-- ;;
-- Keeps a secret that its user has to show a code of before it counts.
CREATE FUNCTION second_factor_begin(session_hash bytea, sealed bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE app_user SET totp_pending = sealed WHERE totp_secret IS NULL
        AND id = (SELECT s.user_id FROM editor_session s WHERE s.hash = session_hash AND s.expires_at > now());
    RETURN FOUND;
END $$
-- ;;
-- From now on signing in asks for a code; every other session ends.
CREATE FUNCTION second_factor_confirm(session_hash bytea, sealed bytea, step bigint, codes bytea[]) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    who uuid := (SELECT s.user_id FROM editor_session s WHERE s.hash = session_hash AND s.expires_at > now());
BEGIN
    UPDATE app_user SET totp_secret = sealed, totp_pending = NULL, totp_step = step
    WHERE id = who AND totp_secret IS NULL AND totp_pending = sealed;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM recovery_code WHERE user_id = who;
    INSERT INTO recovery_code (user_id, hash) SELECT who, c FROM unnest(codes) c;
    DELETE FROM editor_session WHERE user_id = who AND hash <> session_hash;
    RETURN true;
END $$
-- ;;
-- Takes the second factor away, for who shows it.
CREATE FUNCTION second_factor_remove(session_hash bytea, step bigint, recovery bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    who uuid := (SELECT s.user_id FROM editor_session s WHERE s.hash = session_hash AND s.expires_at > now());
BEGIN
    IF NOT code_take(who, step, recovery) THEN
        RETURN false;
    END IF;
    UPDATE app_user SET totp_secret = NULL, totp_pending = NULL WHERE id = who;
    DELETE FROM recovery_code WHERE user_id = who;
    RETURN true;
END $$
-- ;;
REVOKE ALL ON FUNCTION user_for_sign_in, session_of, session_begin_whole, half_begin, half_of, code_take, half_finish, second_factor_of,
    second_factor_begin, second_factor_confirm, second_factor_remove FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION user_for_sign_in, session_of, half_begin, half_of, half_finish, second_factor_of, second_factor_begin,
    second_factor_confirm, second_factor_remove TO tavernkeep_app
