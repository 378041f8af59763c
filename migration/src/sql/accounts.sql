-- Accounts of the editor: users, where they belong, sessions, invitations, resets and second factors.
--
-- All functions run as the schema's owner. Those of a session or link take the hash of a secret that only its holder has. Those of a
-- tenant take the tenant from the caller's transaction. An account that exists gets a new password only from its user, or from the holder
-- of its reset link.

-- `email_folded` is the email in lower case, for ASCII letters only: `lower` depends on the locale of the database.
CREATE TABLE app_user (
    id uuid NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    password_hash text NOT NULL,
    last_sign_in_at timestamptz,
    email_folded text NOT NULL,
    totp_secret bytea,
    totp_pending bytea,
    totp_step bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id)
);
CALL make_server_table('app_user');
CREATE UNIQUE INDEX app_user_folded_key ON app_user (email_folded);

-- Which tenants a user belongs to, and with which role.
CREATE TABLE membership (
    tenant_id uuid NOT NULL,
    user_id uuid NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'editor', 'viewer')),
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, user_id),
    CONSTRAINT membership_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id),
    CONSTRAINT membership_user_fkey FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
CALL make_tenant_table('membership', 'read-only');
CREATE INDEX membership_user ON membership (user_id);

CREATE TABLE editor_session (
    hash bytea NOT NULL,
    user_id uuid NOT NULL,
    tenant_id uuid,
    seen_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (hash),
    CONSTRAINT editor_session_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
CALL make_server_table('editor_session');
CREATE INDEX editor_session_expires ON editor_session (expires_at);
CREATE INDEX editor_session_user ON editor_session (user_id, created_at);

-- Somebody who has shown the password but not yet the second factor. Such a sign-in is not a session, so no function of sessions can
-- mistake it for one.
CREATE TABLE half_sign_in (
    hash bytea NOT NULL,
    user_id uuid NOT NULL,
    password_hash text NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (hash),
    CONSTRAINT half_sign_in_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
CALL make_server_table('half_sign_in');
CREATE INDEX half_sign_in_user ON half_sign_in (user_id, created_at);

CREATE TABLE recovery_code (
    user_id uuid NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (user_id, hash),
    CONSTRAINT recovery_code_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
CALL make_server_table('recovery_code');

-- Who was invited to a tenant. The secret of a link is known only to its holder; the row has its hash.
CREATE TABLE invitation (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    hash bytea NOT NULL,
    email text NOT NULL,
    email_folded text NOT NULL,
    name text NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'editor', 'viewer')),
    invited_by uuid,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT invitation_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)
);
CALL make_tenant_table('invitation', 'read-only');
CREATE UNIQUE INDEX invitation_hash_key ON invitation (hash);
CREATE UNIQUE INDEX invitation_open_key ON invitation (tenant_id, email_folded) WHERE used_at IS NULL;

CREATE TABLE password_reset (
    user_id uuid NOT NULL,
    hash bytea NOT NULL,
    tenant_id uuid,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (user_id),
    CONSTRAINT password_reset_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
CALL make_server_table('password_reset');
CREATE UNIQUE INDEX password_reset_hash_key ON password_reset (hash);

-- The account with an email, which the caller has folded.
CREATE FUNCTION user_for_sign_in(folded text) RETURNS TABLE (user_id uuid, password_hash text, has_second_factor boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.password_hash, u.totp_secret IS NOT NULL FROM app_user u WHERE u.email_folded = folded
$$;

-- Begins a session for somebody who has shown all that the account requires: without a second factor the password alone. The user's row is
-- locked before `verified_hash` is compared with the password. If they differ, nothing begins; if the password changes later, this session
-- ends too. The session that the browser had before ends, and so do the oldest beyond twenty and all that have expired.
CREATE FUNCTION session_begin(its_user uuid, its_hash bytea, old_hash bytea, seconds int, verified_hash text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM FROM app_user WHERE id = its_user FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM app_user WHERE id = its_user AND totp_secret IS NOT NULL) THEN
        RETURN false;
    END IF;
    RETURN session_begin_whole(its_user, its_hash, old_hash, seconds, verified_hash);
END $$;

-- Begins a session, whatever the account requires. Only other functions call it, after they have checked.
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
END $$;

-- Who holds a live session, in which tenant, and with which role. If they no longer belong to that tenant, another of their tenants counts.
-- Without any membership there is no role. Stores once a minute that the session was seen, if its user is doing something.
CREATE FUNCTION session_of(its_hash bytea, idle_seconds int, is_active boolean) RETURNS TABLE (
    user_id uuid, email text, name text, role text, tenants bigint, tenant_id uuid, tenant_name text,
    limits jsonb, settings jsonb, tenant_version bigint, origins text[], llm_api_key bytea, switched_off text[], has_second_factor boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE editor_session s SET seen_at = now()
    WHERE is_active AND s.hash = its_hash AND s.seen_at < now() - interval '1 minute' AND s.expires_at > now()
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
END $$;

-- The tenants that the holder of a session belongs to.
CREATE FUNCTION session_tenants(its_hash bytea) RETURNS TABLE (tenant_id uuid, name text, role text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT t.tenant_id, t.name, m.role FROM editor_session s JOIN membership m ON m.user_id = s.user_id
    JOIN tenant t ON t.tenant_id = m.tenant_id WHERE s.hash = its_hash AND s.expires_at > now() ORDER BY t.name LIMIT 200
$$;

-- Moves a session to another tenant of its user. Returns false if the user does not belong to it.
CREATE FUNCTION session_choose(its_hash bytea, its_tenant uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE editor_session s SET tenant_id = its_tenant
    WHERE s.hash = its_hash AND EXISTS (SELECT 1 FROM membership m WHERE m.user_id = s.user_id AND m.tenant_id = its_tenant);
    RETURN FOUND;
END $$;

-- Ends a session, or all sessions of its user.
CREATE FUNCTION session_end(its_hash bytea, everywhere boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    DELETE FROM editor_session WHERE hash = its_hash
        OR (everywhere AND user_id = (SELECT s.user_id FROM editor_session s WHERE s.hash = its_hash))
$$;

-- The live sessions of the user who has the session with this hash. A session is named by the first half of its own hash, from which no
-- secret can be made.
CREATE FUNCTION session_list(its_hash bytea, idle_seconds int) RETURNS TABLE (
    name text, began_at timestamptz, seen_at timestamptz, is_this boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT encode(substring(s.hash FROM 1 FOR 16), 'hex'), s.created_at, s.seen_at, s.hash = its_hash
    FROM editor_session mine JOIN editor_session s ON s.user_id = mine.user_id
    WHERE mine.hash = its_hash AND mine.expires_at > now() AND s.expires_at > now()
      AND s.seen_at > now() - idle_seconds * interval '1 second'
    ORDER BY s.hash = its_hash DESC, s.seen_at DESC LIMIT 50
$$;

-- Ends a session of the user who has the session with this hash; `named` as in `session_list`.
CREATE FUNCTION session_end_named(its_hash bytea, named text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    DELETE FROM editor_session s USING editor_session mine
    WHERE mine.hash = its_hash AND mine.expires_at > now() AND s.user_id = mine.user_id
      AND encode(substring(s.hash FROM 1 FOR 16), 'hex') = named;
    RETURN FOUND;
END $$;

-- The hash of the password of the user who has the session with this hash.
CREATE FUNCTION session_password(its_hash bytea) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.password_hash FROM editor_session s JOIN app_user u ON u.id = s.user_id
    WHERE s.hash = its_hash AND s.expires_at > now()
$$;

-- Sets a new password, which the user has chosen. Every other session of theirs ends.
CREATE FUNCTION session_set_password(its_hash bytea, new_password_hash text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    who uuid := (SELECT user_id FROM editor_session WHERE hash = its_hash AND expires_at > now());
BEGIN
    UPDATE app_user SET password_hash = new_password_hash, updated_at = now() WHERE id = who;
    DELETE FROM editor_session WHERE user_id = who AND hash <> its_hash;
END $$;

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
$$;

-- Locks the tenant's memberships until the transaction ends, so that two changes at the same time cannot remove the last owners.
CREATE FUNCTION tenant_users_hold() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT 1 FROM membership
    WHERE tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid) FOR NO KEY UPDATE
$$;

-- Changes a user of the caller's tenant. If they belong to another tenant too, only they may change their name. A reset link that was made
-- for the previous role stops working.
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
END $$;

-- Removes a user from the caller's tenant. An account without any tenant is deleted.
CREATE FUNCTION tenant_user_remove(its_id uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    here uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
BEGIN
    DELETE FROM membership WHERE user_id = its_id AND tenant_id = here;
    IF FOUND THEN
        DELETE FROM app_user WHERE id = its_id AND NOT EXISTS (SELECT 1 FROM membership WHERE user_id = its_id);
    END IF;
END $$;

-- Invites somebody to the caller's tenant. An open invitation of the same address is replaced. Returns 'made', 'member' if they belong to it
-- already, or 'full'. The answer does not depend on whether the address has an account elsewhere.
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
END $$;

-- Withdraws an invitation that nobody has accepted yet.
CREATE FUNCTION invitation_withdraw(its_id uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    DELETE FROM invitation WHERE id = its_id AND used_at IS NULL
        AND tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid
$$;

-- The invitation of a link that is still valid.
CREATE FUNCTION invitation_of(its_hash bytea) RETURNS TABLE (
    tenant_id uuid, tenant_name text, email text, email_folded text, name text, role text, has_account boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT i.tenant_id, t.name, i.email, i.email_folded, i.name, i.role,
           EXISTS (SELECT FROM app_user u WHERE u.email_folded = i.email_folded)
    FROM invitation i JOIN tenant t ON t.tenant_id = i.tenant_id
    WHERE i.hash = its_hash AND i.used_at IS NULL AND i.expires_at > now()
$$;

-- Accepts an invitation with a new account. Returns false if the link is not valid any more. If the address has got an account meanwhile,
-- `app_user_folded_key` is violated.
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
END $$;

-- Accepts an invitation with the account that is signed in, if it has the invitation's address. The account then belongs to another tenant
-- too, so its other sessions end, and reset links of its tenants stop working. The user's row is locked, as a reset locks it.
CREATE FUNCTION invitation_accept(its_hash bytea, session_hash bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    asked invitation;
    who app_user;
BEGIN
    SELECT u.* INTO who FROM app_user u
    WHERE u.id = (SELECT s.user_id FROM editor_session s WHERE s.hash = session_hash AND s.expires_at > now()) FOR NO KEY UPDATE;
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
END $$;

-- Makes a reset link for a user of the caller's tenant. Returns false if the user does not belong to it, or also to another tenant.
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
END $$;

-- The account of a reset link that is still valid. A tenant's link is valid only while the account belongs to no other tenant.
CREATE FUNCTION reset_of(its_hash bytea) RETURNS TABLE (user_id uuid, email text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.email FROM password_reset r JOIN app_user u ON u.id = r.user_id
    WHERE r.hash = its_hash AND r.expires_at > now()
      AND (r.tenant_id IS NULL OR (
          EXISTS (SELECT FROM membership m WHERE m.user_id = u.id AND m.tenant_id = r.tenant_id)
          AND NOT EXISTS (SELECT FROM membership m WHERE m.user_id = u.id AND m.tenant_id <> r.tenant_id)))
$$;

-- Uses a reset link, which works once: sets the new password, and ends all sessions of the account.
CREATE FUNCTION reset_use(its_hash bytea, new_password_hash text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    who uuid := (SELECT user_id FROM reset_of(its_hash));
BEGIN
    PERFORM FROM app_user WHERE id = who FOR NO KEY UPDATE;
    -- Asks again, because it may have changed before the row was locked.
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
END $$;

-- Whoever knows the password of an account with a second factor has ten minutes to show it. At most twenty such sign-ins are kept.
CREATE FUNCTION half_begin(its_user uuid, its_hash bytea, old_hash bytea, verified_hash text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM FROM app_user WHERE id = its_user AND password_hash = verified_hash FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM editor_session WHERE hash = old_hash;
    DELETE FROM half_sign_in WHERE hash = old_hash OR expires_at < now() OR hash IN (
        SELECT h.hash FROM half_sign_in h WHERE h.user_id = its_user ORDER BY h.created_at DESC OFFSET 19);
    INSERT INTO half_sign_in (hash, user_id, password_hash, expires_at)
    VALUES (its_hash, its_user, verified_hash, now() + interval '10 minutes');
    RETURN true;
END $$;

-- The account of a sign-in that waits for its second factor.
CREATE FUNCTION half_of(its_hash bytea) RETURNS TABLE (user_id uuid, email_folded text, totp_secret bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.email_folded, u.totp_secret FROM half_sign_in h JOIN app_user u ON u.id = h.user_id
    WHERE h.hash = its_hash AND h.expires_at > now() AND h.password_hash = u.password_hash AND u.totp_secret IS NOT NULL
$$;

-- Accepts a code, which counts once: the time step of a generated code, or the hash of a recovery code.
CREATE FUNCTION code_take(its_user uuid, step bigint, recovery bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF step IS NOT NULL THEN
        UPDATE app_user SET totp_step = step WHERE id = its_user AND totp_step < step AND totp_secret IS NOT NULL;
    ELSE
        DELETE FROM recovery_code WHERE user_id = its_user AND hash = recovery;
    END IF;
    RETURN FOUND;
END $$;

-- Completes a sign-in with the second factor: replaces it by a session, if the code is accepted.
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
END $$;

-- The second factor of the user who has the session with this hash.
CREATE FUNCTION second_factor_of(session_hash bytea) RETURNS TABLE (
    user_id uuid, totp_secret bytea, totp_pending bytea, codes_left bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.totp_secret, u.totp_pending, (SELECT count(*) FROM recovery_code c WHERE c.user_id = u.id)
    FROM editor_session s JOIN app_user u ON u.id = s.user_id WHERE s.hash = session_hash AND s.expires_at > now()
$$;

-- Stores the secret of a second factor. It counts once the user has shown a code of it.
CREATE FUNCTION second_factor_begin(session_hash bytea, sealed bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE app_user SET totp_pending = sealed WHERE totp_secret IS NULL
        AND id = (SELECT s.user_id FROM editor_session s WHERE s.hash = session_hash AND s.expires_at > now());
    RETURN FOUND;
END $$;

-- Makes the stored second factor count. Every other session of the user ends.
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
END $$;

-- Removes the second factor, if a code of it is shown.
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
END $$;

-- Deletes sessions that have expired, or that nobody used for `idle_seconds`.
CREATE FUNCTION prune_editor_sessions(idle_seconds int, rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM editor_session WHERE hash IN (
        SELECT s.hash FROM editor_session s
        WHERE s.expires_at < now() OR s.seen_at < now() - idle_seconds * interval '1 second' LIMIT rows_max);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

CREATE TRIGGER a_touch BEFORE UPDATE ON membership FOR EACH ROW
    EXECUTE FUNCTION touch_row();
