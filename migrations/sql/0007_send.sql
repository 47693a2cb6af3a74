-- Gives an address as mail goes to it and as it is compared, by the rule of console/audience/address.py, for addresses in
-- ASCII; tests/sends/test_sql_address.py holds both against each other. Of other characters lower case is another matter
-- in each database (and an opt-out would be missed), so they are refused. Whether an A-label decodes is not asked.
CREATE FUNCTION sendonce.address(given text, OUT email text, OUT email_lower text)
LANGUAGE plpgsql IMMUTABLE AS $address$
DECLARE
    v_text text := normalize(btrim(given,
        E'\u0009\u000a\u000b\u000c\u000d\u001c\u001d\u001e\u001f\u0020\u0085\u00a0\u00ad\u1680\u180e\u2000\u2001\u2002'
        '\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c'
        '\u202d\u202e\u202f\u205f\u2060\u2066\u2067\u2068\u2069\u3000\ufeff'), NFC);
    v_local text := split_part(v_text, '@', 1);
    v_domain text := lower(split_part(v_text, '@', 2) COLLATE "C");
BEGIN
    IF v_local ~ '[^\u0001-\u007f]' THEN
        RAISE EXCEPTION 'The address % has a character before the @ that is not in ASCII.', quote_literal(given)
              USING ERRCODE = 'SO001', COLUMN = 'recipient', HINT = 'Hand this message over by the HTTP API.';
    ELSIF v_domain ~ '[^\u0001-\u007f]' THEN
        RAISE EXCEPTION 'The domain of the address % is not in ASCII.', quote_literal(given)
              USING ERRCODE = 'SO001', COLUMN = 'recipient',
                    HINT = 'Give its A-label: xn--mnchen-3ya.example for münchen.example.';
    ELSIF v_text IS NULL OR v_text !~ '^[^@]+@[^@]+$' OR length(v_text) > 254 OR length(v_local) > 64
       OR v_local !~ '^[a-zA-Z0-9_!#$%&''*+/=?^`{|}~-]+(\.[a-zA-Z0-9_!#$%&''*+/=?^`{|}~-]+)*$'
       OR length(v_domain) > 253
       OR v_domain !~ '^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+([a-z0-9][a-z0-9-]*)?[a-z]$'
       -- No label is longer than 63 (RFC 1035, 2.3.1).
       OR v_domain ~ '[^.]{64}'
       -- Two hyphens in third place are for A-labels (RFC 5890, 2.3.1).
       OR v_domain ~ '(^|\.)(?!xn)..--'
       -- Names that no mail goes to (RFC 6761, RFC 6762, RFC 7686).
       OR v_domain ~ '(^|\.)(arpa|invalid|local|localhost|onion)$'
    THEN
        RAISE EXCEPTION 'The address % is not one that mail can go to.', COALESCE(quote_literal(given), 'NULL')
              USING ERRCODE = 'SO001', COLUMN = 'recipient', HINT = 'Give one address alone, such as rita@example.com.';
    END IF;
    email := v_local || '@' || v_domain;
    email_lower := lower(v_local COLLATE "C") || '@' || v_domain;
END
$address$;

-- For applications on this PostgreSQL: takes a message in the caller's own transaction. See README, "Mail from SQL".
-- Runs as its owner; the account is the one that the role which signed in was granted (sendonce db grant).
CREATE FUNCTION sendonce.send(
    recipient text, message_type text, dedupe_key text DEFAULT NULL, params jsonb DEFAULT '{}',
    template text DEFAULT NULL, subject text DEFAULT NULL, html text DEFAULT NULL, body text DEFAULT NULL,
    lane text DEFAULT NULL, send_after timestamptz DEFAULT NULL, expires_after timestamptz DEFAULT NULL,
    correlation_id text DEFAULT NULL, code_path text DEFAULT '', event text DEFAULT NULL, entities jsonb DEFAULT '{}',
    metadata jsonb DEFAULT '{}', account text DEFAULT NULL, request_id text DEFAULT NULL,
    OUT id bigint, OUT status text, OUT is_duplicate boolean, OUT message_id text, OUT used_key text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $send$
#variable_conflict use_variable
DECLARE
    v_account_id bigint := sendonce.granted_account(account);
    v_address record := sendonce.address(recipient);
    v_receipt jsonb;
BEGIN
    IF subject IS NULL AND (html IS NOT NULL OR body IS NOT NULL) OR html IS NULL AND subject IS NOT NULL THEN
        RAISE EXCEPTION 'Finished parts are a subject and an HTML part, and a text part (body) if you like.'
              USING ERRCODE = 'SO001', COLUMN = CASE WHEN subject IS NULL THEN 'subject' ELSE 'html' END,
                    HINT = 'Give both, or neither when the message type has a template.';
    END IF;
    v_receipt := accept_send(v_account_id, jsonb_build_object(
        'email', v_address.email, 'email_lower', v_address.email_lower, 'message_type', message_type,
        'dedupe_key', dedupe_key, 'params', COALESCE(params, '{}'), 'template', template, 'lane', lane,
        'rendered', CASE WHEN html IS NOT NULL
                         THEN jsonb_build_object('subject', subject, 'html', html, 'text', COALESCE(body, '')) END,
        'send_after', send_after, 'expires_after', expires_after, 'correlation_id', correlation_id,
        'request_id', request_id, 'trigger_source', 'sql', 'code_path', COALESCE(code_path, ''), 'event', event,
        'entities', COALESCE(entities, '{}'), 'metadata', COALESCE(metadata, '{}')));
    IF v_receipt->>'decision' = 'refused' THEN
        RAISE EXCEPTION 'The dedupe key % is taken by message %, which differs in %.',
                        quote_literal(v_receipt->>'dedupe_key'), v_receipt->>'first_id',
                        (SELECT string_agg(d, ', ') FROM jsonb_array_elements_text(v_receipt->'differs') AS d)
              USING ERRCODE = 'unique_violation', COLUMN = 'dedupe_key',
                    HINT = 'Name the event more exactly in the key, or send what you sent before.';
    END IF;
    IF v_receipt->'warnings' ? 'key_looks_random' THEN
        RAISE WARNING 'The dedupe key % looks random: the same message has come with another one.',
                      quote_literal(v_receipt->>'dedupe_key')
              USING HINT = 'A random key makes a message of each repeat. Name the event: order_receipt:1001.';
    END IF;
    id := v_receipt->>'id';
    status := v_receipt->>'status';
    is_duplicate := v_receipt->>'is_duplicate';
    message_id := v_receipt->>'message_id';
    used_key := v_receipt->>'dedupe_key';
END
$send$;

-- Gives the account that the role which signed in may send for; with several, the one with that slug.
CREATE FUNCTION sendonce.granted_account(slug text) RETURNS bigint
LANGUAGE plpgsql STABLE AS $granted$
#variable_conflict use_column
DECLARE
    v_slugs text[];
    v_ids bigint[];
BEGIN
    SELECT array_agg(g.account_id), array_agg(a.slug ORDER BY a.slug) INTO v_ids, v_slugs
      FROM (SELECT DISTINCT account_id FROM sql_grants s JOIN pg_roles r ON r.rolname = s.role_name
             WHERE pg_has_role(session_user, r.oid, 'MEMBER')) AS g
      JOIN accounts a ON a.id = g.account_id
     WHERE granted_account.slug IS NULL OR a.slug = granted_account.slug;
    IF v_ids IS NULL THEN
        RAISE EXCEPTION 'The role % may not send for %.', quote_ident(session_user),
                        COALESCE('the account ' || quote_literal(granted_account.slug), 'any account')
              USING ERRCODE = 'insufficient_privilege',
                    HINT = format('Whoever runs Sendonce lets it: sendonce db grant %s --account SLUG', session_user);
    ELSIF cardinality(v_ids) > 1 THEN
        RAISE EXCEPTION 'The role % may send for several accounts: %.', quote_ident(session_user),
                        array_to_string(v_slugs, ', ')
              USING ERRCODE = 'SO001', COLUMN = 'account', HINT = format('Name one: account => %L', v_slugs[1]);
    END IF;
    RETURN v_ids[1];
END
$granted$;
