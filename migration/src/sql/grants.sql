-- What the server may call: every function but those that only functions of the schema's owner call. A function runs with the rights of its
-- caller, and row security applies to it, unless it is SECURITY DEFINER. Such a function runs as the schema's owner, whose own policies let
-- it see all rows. One that serves a request takes its tenant from the caller's settings, or from a secret that the caller has to know. One
-- that serves the server's own work is told the tenants, or sees all of them.
REVOKE ALL ON ALL ROUTINES IN SCHEMA public FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO tavernkeep_app;
REVOKE EXECUTE ON FUNCTION
    bump_head, code_take, erase_columns, erase_image, erase_is_own, erase_journal, erase_json, erase_pattern, erase_readable,
    erase_text, forget_reaction, forget_scores, session_begin_whole
    FROM tavernkeep_app;
GRANT SELECT ON seaql_migrations TO tavernkeep_app;
