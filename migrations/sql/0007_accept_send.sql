-- The one door in. Decides over one request to send: makes its message, or names the one that holds its key, and writes
-- the trigger. Called by console/sends/intake.py for all programs of ours, and by sendonce.send for SQL.
--
-- p_request: email, email_lower, message_type, params, rendered {subject, html, text}, template, dedupe_key, lane,
--   send_after, expires_after (ISO 8601), correlation_id, request_id, trigger_source, code_path, event, entities, metadata
-- Gives: id, status, is_duplicate, decision, message_id, dedupe_key, correlation_id, warnings, differs, first_id.
--   A decision `refused` (the key is taken by other content) has id null, first_id and differs.
-- Raises: SQLSTATE SO001 for bad input, with the field in COLUMN.
CREATE FUNCTION accept_send(p_account_id bigint, p_request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $accept$
DECLARE
    v_type message_types;
    v_content send_contents;
    v_send sends;
    v_email_lower text := p_request->>'email_lower';
    v_params jsonb := COALESCE(p_request->'params', '{}');
    v_entities jsonb := COALESCE(p_request->'entities', '{}');
    v_rendered jsonb := p_request->'rendered';
    v_correlation_id text := COALESCE(NULLIF(p_request->>'correlation_id', ''), gen_random_uuid()::text);
    v_given_key text := NULLIF(p_request->>'dedupe_key', '');
    v_key text;
    v_lane text;
    v_due_at timestamptz := GREATEST(COALESCE((p_request->>'send_after')::timestamptz, now()), now());
    v_expires_at timestamptz := (p_request->>'expires_after')::timestamptz;
    v_missing text[];
    v_suppression text;
    v_differs text[] := '{}';
    v_warnings text[] := '{}';
    v_decision text;
    v_fingerprint text;
BEGIN
    SELECT * INTO v_type FROM message_types WHERE account_id = p_account_id AND name = p_request->>'message_type';
    IF NOT FOUND OR v_type.name = 'campaign' THEN
        RAISE EXCEPTION 'There is no message type % for single messages in this account.',
                        COALESCE(quote_literal(p_request->>'message_type'), '(none)')
              USING ERRCODE = 'SO001', COLUMN = 'message_type',
                    HINT = 'Make it with: sendonce message-type set NAME --account SLUG --lane LANE --template TEMPLATE';
    END IF;
    v_lane := COALESCE(NULLIF(p_request->>'lane', ''), v_type.lane);
    IF v_lane NOT IN ('urgent', 'normal', 'bulk') THEN
        RAISE EXCEPTION 'There is no lane %; use urgent, normal or bulk.', quote_literal(v_lane)
              USING ERRCODE = 'SO001', COLUMN = 'lane';
    END IF;
    IF v_expires_at <= GREATEST(v_due_at, now()) THEN
        RAISE EXCEPTION 'The message would expire before it may be sent.'
              USING ERRCODE = 'SO001', COLUMN = 'expires_after';
    END IF;

    -- The content, as a retry will find it.
    IF v_rendered IS NOT NULL AND v_rendered <> 'null' THEN
        IF v_type.sender IS NULL THEN
            RAISE EXCEPTION 'The message type % has no sender.', quote_literal(v_type.name)
                  USING ERRCODE = 'SO001', COLUMN = 'message_type';
        END IF;
        v_fingerprint := encode(sha256(convert_to(jsonb_build_array('rendered', v_type.sender, v_rendered->>'subject',
                                v_rendered->>'html', COALESCE(v_rendered->>'text', ''))::text, 'UTF8')), 'hex');
        INSERT INTO send_contents (account_id, fingerprint, subject, sender, sender_domain, html, text, is_rendered)
        VALUES (p_account_id, v_fingerprint, v_rendered->>'subject', v_type.sender,
                lower(rtrim(split_part(v_type.sender, '@', -1), '> ')), v_rendered->>'html',
                COALESCE(v_rendered->>'text', ''), true)
            ON CONFLICT (account_id, fingerprint) DO NOTHING;
        SELECT * INTO STRICT v_content FROM send_contents
         WHERE account_id = p_account_id AND fingerprint = v_fingerprint;
    ELSE
        SELECT * INTO v_content FROM send_contents WHERE account_id = p_account_id AND id = v_type.content_id;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'The message type % has no template; give the finished parts.', quote_literal(v_type.name)
                  USING ERRCODE = 'SO001', COLUMN = 'rendered';
        END IF;
        IF NULLIF(p_request->>'template', '') <> v_content.template THEN
            RAISE EXCEPTION 'Messages of the type % are made from the template %.', quote_literal(v_type.name),
                            quote_literal(v_content.template)
                  USING ERRCODE = 'SO001', COLUMN = 'template';
        END IF;
        SELECT array_agg(f ORDER BY f) INTO v_missing FROM unnest(v_content.required_fields) AS f
         WHERE COALESCE(btrim(v_params->>f), '') = '';
        IF v_missing IS NOT NULL THEN
            RAISE EXCEPTION 'The template % needs %.', quote_literal(v_content.template), array_to_string(v_missing, ', ')
                  USING ERRCODE = 'SO001', COLUMN = 'params';
        END IF;
    END IF;

    -- The key: given, or made from the pattern.
    v_key := v_given_key;
    IF v_key IS NULL AND v_type.key_pattern IS NULL THEN
        RAISE EXCEPTION 'The message type % makes no dedupe keys; give one.', quote_literal(v_type.name)
              USING ERRCODE = 'SO001', COLUMN = 'dedupe_key',
                    HINT = 'A good key names the event: order_receipt:1001. Or set a pattern for the type.';
    ELSIF v_key IS NULL THEN
        SELECT string_agg(CASE WHEN p.part[1] IS NOT NULL THEN p.part[1] ELSE k.value END, '' ORDER BY p.place),
               array_agg(p.part[2] ORDER BY p.place) FILTER (WHERE p.part[2] IS NOT NULL AND COALESCE(k.value, '') = '')
          INTO v_key, v_missing
          FROM regexp_matches(v_type.key_pattern, '([^{}]+)|\{([^{}]+)\}', 'g') WITH ORDINALITY AS p (part, place)
         CROSS JOIN LATERAL (
             SELECT CASE p.part[2] WHEN 'recipient' THEN v_email_lower
                                   WHEN 'date' THEN to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')
                                   WHEN 'message_type' THEN v_type.name
                                   WHEN 'event' THEN p_request->>'event'
                                   ELSE COALESCE(v_params->>p.part[2], v_entities->>p.part[2]) END) AS k (value);
        IF v_missing IS NOT NULL THEN
            RAISE EXCEPTION 'The dedupe key % needs %.', quote_literal(v_type.key_pattern),
                            array_to_string(v_missing, ', ')
                  USING ERRCODE = 'SO001', COLUMN = 'params';
        END IF;
    END IF;
    IF length(v_key) > 500 OR v_key LIKE 'campaign:%' THEN
        RAISE EXCEPTION 'A dedupe key has at most 500 characters and does not begin with "campaign:".'
              USING ERRCODE = 'SO001', COLUMN = 'dedupe_key';
    END IF;

    SELECT x.kind || ': ' || x.reason INTO v_suppression FROM suppressions x
     WHERE x.account_id = p_account_id AND x.email_lower = v_email_lower AND x.list_id IS NULL;

    -- The insert decides. A key that is past its window is let go of first: of all who come at once, one update and one
    -- insert go through, since the others wait for that row and then find it changed.
    FOR v_round IN 1 .. 5 LOOP
        UPDATE sends SET holds_key = false
         WHERE account_id = p_account_id AND dedupe_key = v_key AND holds_key AND key_until <= now();
        INSERT INTO sends (account_id, email, email_lower, lane, dedupe_key, key_until, message_type, content_id,
                           merge_values, metadata, due_at, first_due_at, expires_at, message_id, correlation_id,
                           status, provider_reply, finished_at)
        VALUES (p_account_id, p_request->>'email', v_email_lower, v_lane, v_key,
                now() + make_interval(secs => v_type.window_s), v_type.name, v_content.id, v_params,
                COALESCE(p_request->'metadata', '{}'), v_due_at, v_due_at, v_expires_at,
                '<' || replace(gen_random_uuid()::text, '-', '') || '@' || v_content.sender_domain || '>',
                v_correlation_id, CASE WHEN v_suppression IS NULL THEN 'queued' ELSE 'suppressed' END,
                'suppressed: ' || v_suppression, CASE WHEN v_suppression IS NOT NULL THEN now() END)
            ON CONFLICT (account_id, dedupe_key) WHERE holds_key DO NOTHING
        RETURNING * INTO v_send;
        IF FOUND THEN
            v_decision := CASE WHEN v_suppression IS NULL THEN 'accepted' ELSE 'suppressed' END;
            EXIT;
        END IF;
        SELECT * INTO v_send FROM sends WHERE account_id = p_account_id AND dedupe_key = v_key AND holds_key;
        IF FOUND THEN
            v_decision := 'duplicate_suppressed';
            EXIT;
        END IF;
    END LOOP;
    IF v_decision IS NULL THEN
        RAISE EXCEPTION 'The key % changed hands five times; try again.', quote_literal(v_key)
              USING ERRCODE = 'serialization_failure';
    END IF;

    IF v_decision = 'duplicate_suppressed' THEN
        v_differs := array_remove(ARRAY[
            CASE WHEN v_send.email_lower <> v_email_lower THEN 'to' END,
            CASE WHEN v_send.message_type IS DISTINCT FROM v_type.name THEN 'message_type' END,
            CASE WHEN v_send.merge_values <> v_params THEN 'params' END,
            CASE WHEN v_send.content_id <> v_content.id
                  AND (v_content.is_rendered OR EXISTS (SELECT FROM send_contents c WHERE c.account_id = p_account_id
                                                           AND c.id = v_send.content_id AND c.is_rendered))
                 THEN 'rendered' END], NULL);
        IF v_type.mode = 'observe' THEN
            v_decision := 'duplicate_observed';
            INSERT INTO sends (account_id, email, email_lower, lane, dedupe_key, holds_key, message_type, content_id,
                               merge_values, metadata, due_at, first_due_at, expires_at, message_id, correlation_id,
                               status, provider_reply, finished_at)
            VALUES (p_account_id, p_request->>'email', v_email_lower, v_lane, v_key, false, v_type.name, v_content.id,
                    v_params, COALESCE(p_request->'metadata', '{}'), v_due_at, v_due_at, v_expires_at,
                    '<' || replace(gen_random_uuid()::text, '-', '') || '@' || v_content.sender_domain || '>',
                    v_correlation_id, CASE WHEN v_suppression IS NULL THEN 'queued' ELSE 'suppressed' END,
                    'suppressed: ' || v_suppression, CASE WHEN v_suppression IS NOT NULL THEN now() END)
            RETURNING * INTO v_send;
        ELSIF v_differs <> '{}' AND v_type.on_conflict = 'refuse' THEN
            v_decision := 'refused';
        END IF;
        IF v_differs = '{params}' THEN
            v_warnings := v_warnings || 'key_too_broad'::text;
        END IF;
    ELSIF v_given_key ~* '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
          AND EXISTS (SELECT FROM sends s WHERE s.account_id = p_account_id AND s.email_lower = v_email_lower
                         AND s.message_type = v_type.name AND s.merge_values = v_params AND s.id <> v_send.id
                         AND s.created_at > now() - interval '1 day') THEN
        v_warnings := v_warnings || 'key_looks_random'::text;
    END IF;

    INSERT INTO triggers (account_id, source, code_path, correlation_id, send_id, decision, message_type, email_lower,
                          template, dedupe_key, request_id, event, entities, differs)
    VALUES (p_account_id, COALESCE(NULLIF(p_request->>'trigger_source', ''), 'api'),
            COALESCE(p_request->>'code_path', ''), v_correlation_id, v_send.id, v_decision, v_type.name, v_email_lower,
            v_content.template, v_key, p_request->>'request_id', p_request->>'event', v_entities,
            NULLIF(v_differs, '{}'));
    IF v_send.status = 'queued' AND v_send.due_at <= now() AND v_decision IN ('accepted', 'duplicate_observed') THEN
        PERFORM pg_notify('sendonce_work', v_lane);
    END IF;
    RETURN jsonb_build_object(
        'id', CASE WHEN v_decision <> 'refused' THEN v_send.id END, 'status', v_send.status,
        'is_duplicate', v_decision = 'duplicate_suppressed', 'decision', v_decision, 'message_id', v_send.message_id,
        'dedupe_key', v_key, 'correlation_id', v_correlation_id, 'warnings', v_warnings, 'differs', v_differs,
        'first_id', v_send.id);
END
$accept$
