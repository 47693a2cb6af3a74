-- For applications on this PostgreSQL: takes a message in the caller's own transaction. See README, "Mail from SQL".
-- Runs as its owner; the account is the one that the signed-in role was granted (sendonce db grant).
CREATE FUNCTION sendonce.send(
    recipient text, message_type text, dedupe_key text DEFAULT NULL, params jsonb DEFAULT '{}',
    template text DEFAULT NULL, subject text DEFAULT NULL, html text DEFAULT NULL, body text DEFAULT NULL,
    lane text DEFAULT NULL, send_after timestamptz DEFAULT NULL, expires_after timestamptz DEFAULT NULL,
    correlation_id text DEFAULT NULL, code_path text DEFAULT '', event text DEFAULT NULL, entities jsonb DEFAULT '{}',
    metadata jsonb DEFAULT '{}', account text DEFAULT NULL,
    OUT id bigint, OUT status text, OUT is_duplicate boolean, OUT message_id text, OUT used_key text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $send$
#variable_conflict use_variable
DECLARE
    v_accounts bigint[];
    v_email text := normalize(btrim(recipient, E' \t\r\n\u00a0\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff'), NFC);
    v_local text := regexp_replace(v_email, '@[^@]*$', '');
    v_domain text := lower(split_part(v_email, '@', -1));
    v_receipt jsonb;
BEGIN
    SELECT array_agg(g.account_id) INTO v_accounts
      FROM sql_grants g JOIN accounts a ON a.id = g.account_id
      JOIN pg_roles r ON r.rolname = g.role_name
     WHERE pg_has_role(session_user, r.oid, 'MEMBER') AND (account IS NULL OR a.slug = account);
    IF COALESCE(cardinality(v_accounts), 0) <> 1 THEN
        RAISE EXCEPTION 'The role % may send for % accounts here; it must be one.', quote_ident(session_user),
                        COALESCE(cardinality(v_accounts), 0)
              USING ERRCODE = 'insufficient_privilege',
                    HINT = 'Grant it with: sendonce db grant ROLE --account SLUG. With several, name one: account => ''slug''.';
    END IF;
    IF v_email !~ '^[ -~]*$' THEN
        RAISE EXCEPTION '% is not in ASCII.', quote_literal(recipient)
              USING ERRCODE = 'SO001', COLUMN = 'recipient',
                    HINT = 'Give the domain''s A-label, such as xn--mnchen-3ya.example; other characters before the @ '
                           'go through the HTTP API.';
    END IF;
    IF v_email IS NULL OR v_email !~ '^[^@\s<>()\[\]\\,;:"[:cntrl:]]{1,64}@[^@]+$' OR v_local ~ '(^\.|\.\.|\.$)'
       OR length(v_domain) > 190
       OR v_domain !~ '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$' THEN
        RAISE EXCEPTION '% is not an address that mail can go to.', COALESCE(quote_literal(recipient), 'NULL')
              USING ERRCODE = 'SO001', COLUMN = 'recipient';
    END IF;
    IF octet_length(params::text) > 100000 OR jsonb_typeof(params) <> 'object' THEN
        RAISE EXCEPTION 'The parameters must be an object of at most 100,000 bytes.'
              USING ERRCODE = 'SO001', COLUMN = 'params';
    END IF;
    IF (subject IS NULL) <> (html IS NULL) OR (html IS NULL AND body IS NOT NULL) THEN
        RAISE EXCEPTION 'Finished parts need both subject and html.' USING ERRCODE = 'SO001', COLUMN = 'subject';
    END IF;
    v_receipt := accept_send(v_accounts[1], jsonb_strip_nulls(jsonb_build_object(
        'email', v_local || '@' || v_domain, 'email_lower', lower(v_local) || '@' || v_domain,
        'message_type', message_type, 'dedupe_key', dedupe_key, 'template', template, 'lane', lane,
        'rendered', CASE WHEN html IS NOT NULL
                         THEN jsonb_build_object('subject', subject, 'html', html, 'text', COALESCE(body, '')) END,
        'send_after', send_after, 'expires_after', expires_after, 'correlation_id', correlation_id,
        'trigger_source', 'sql', 'code_path', code_path, 'event', event, 'entities', entities, 'metadata', metadata))
        || jsonb_build_object('params', params));
    IF v_receipt->>'decision' = 'refused' THEN
        RAISE EXCEPTION 'The dedupe key % is taken by message %, which has other content: %.',
                        quote_literal(v_receipt->>'dedupe_key'), v_receipt->>'first_id', v_receipt->>'differs'
              USING ERRCODE = 'unique_violation', HINT = 'Name the event more exactly in the key.';
    END IF;
    id := v_receipt->>'id';
    status := v_receipt->>'status';
    is_duplicate := v_receipt->>'is_duplicate';
    message_id := v_receipt->>'message_id';
    used_key := v_receipt->>'dedupe_key';
END
$send$
