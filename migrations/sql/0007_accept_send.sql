-- Checks the shape and size of a request. Raises: SQLSTATE SO001 with the field in COLUMN.
CREATE FUNCTION sendonce.check_request(p_request jsonb) RETURNS void LANGUAGE plpgsql STABLE AS $check$
DECLARE
    v_word record;
    v_rendered jsonb := NULLIF(p_request->'rendered', 'null');
    v_key text := p_request->>'dedupe_key';
    v_due_at timestamptz := GREATEST(COALESCE((p_request->>'send_after')::timestamptz, now()), now());
BEGIN
    SELECT w.* INTO v_word
      FROM (VALUES ('message_type', 200), ('template', 200), ('correlation_id', 200), ('request_id', 200),
                   ('code_path', 200), ('event', 200), ('dedupe_key', 500)) AS w (name, most)
     WHERE length(p_request->>w.name) > w.most LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'The % has more than % characters.', v_word.name, v_word.most
              USING ERRCODE = 'SO001', COLUMN = v_word.name;
    END IF;
    SELECT w.* INTO v_word FROM (VALUES ('params', 100000), ('entities', 2000), ('metadata', 2000)) AS w (name, most)
     WHERE jsonb_typeof(p_request->w.name) <> 'object' OR length(p_request->>w.name) > w.most LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'The % must be a JSON object of at most % characters.', v_word.name, v_word.most
              USING ERRCODE = 'SO001', COLUMN = v_word.name;
    END IF;
    IF btrim(v_key) = '' AND v_key <> '' OR v_key ~ '[\u0001-\u001f\u007f]' THEN
        RAISE EXCEPTION 'The dedupe key % is blank or holds a control character.', quote_literal(v_key)
              USING ERRCODE = 'SO001', COLUMN = 'dedupe_key', HINT = 'A good key names the event: order_receipt:1001.';
    ELSIF v_key ~ '^campaign:' THEN
        -- Who took one would keep a campaign's message from its subscriber.
        RAISE EXCEPTION 'Keys that begin with "campaign:" are those of campaigns.'
              USING ERRCODE = 'SO001', COLUMN = 'dedupe_key', HINT = 'Begin it with the name of the message type.';
    ELSIF (p_request->>'lane') NOT IN ('', 'urgent', 'normal', 'bulk') THEN
        RAISE EXCEPTION 'There is no lane %; use urgent, normal or bulk.', quote_literal(p_request->>'lane')
              USING ERRCODE = 'SO001', COLUMN = 'lane';
    ELSIF NOT isfinite(v_due_at) THEN
        RAISE EXCEPTION 'The message would never be sent.' USING ERRCODE = 'SO001', COLUMN = 'send_after';
    ELSIF (p_request->>'expires_after')::timestamptz <= v_due_at THEN
        RAISE EXCEPTION 'The message would expire before it may be sent.'
              USING ERRCODE = 'SO001', COLUMN = 'expires_after';
    ELSIF v_rendered IS NULL THEN
        RETURN;
    ELSIF btrim(v_rendered->>'subject') = '' OR v_rendered->>'subject' ~ '[\u0001-\u001f\u007f\u0085\u2028\u2029]'
       OR length(v_rendered->>'subject') > 900 THEN
        RAISE EXCEPTION 'The subject is one line of 1 to 900 characters.'
              USING ERRCODE = 'SO001', COLUMN = 'rendered.subject';
    ELSIF btrim(v_rendered->>'html', E' \t\r\n') = '' OR length(v_rendered->>'html') > 500000 THEN
        RAISE EXCEPTION 'The HTML part has 1 to 500,000 characters.' USING ERRCODE = 'SO001', COLUMN = 'rendered.html';
    ELSIF length(v_rendered->>'text') > 500000 THEN
        RAISE EXCEPTION 'The text part has at most 500,000 characters.'
              USING ERRCODE = 'SO001', COLUMN = 'rendered.text';
    END IF;
END
$check$;

-- Gives the content of the message: that of the type's template, or the finished parts, without id when they are new.
CREATE FUNCTION sendonce.content_of(p_type message_types, p_request jsonb) RETURNS send_contents
LANGUAGE plpgsql STABLE AS $content$
DECLARE
    v_rendered jsonb := NULLIF(p_request->'rendered', 'null');
    v_content send_contents;
    v_fingerprint text;
BEGIN
    IF v_rendered IS NOT NULL THEN
        IF p_type.sender IS NULL THEN
            RAISE EXCEPTION 'The message type % has no sender.', quote_literal(p_type.name)
                  USING ERRCODE = 'SO001', COLUMN = 'message_type';
        END IF;
        v_fingerprint := encode(sha256(convert_to(jsonb_build_array('rendered', p_type.sender, v_rendered->>'subject',
                                v_rendered->>'html', COALESCE(v_rendered->>'text', ''))::text, 'UTF8')), 'hex');
        SELECT * INTO v_content FROM send_contents
         WHERE account_id = p_type.account_id AND fingerprint = v_fingerprint AND is_rendered LIMIT 1;
        IF NOT FOUND THEN
            v_content.account_id := p_type.account_id;
            v_content.fingerprint := v_fingerprint;
            v_content.subject := v_rendered->>'subject';
            v_content.sender := p_type.sender;
            v_content.sender_domain := lower(rtrim(split_part(p_type.sender, '@', -1), '> ') COLLATE "C");
            v_content.html := v_rendered->>'html';
            v_content.text := COALESCE(v_rendered->>'text', '');
            v_content.is_rendered := true;
        END IF;
        RETURN v_content;
    END IF;
    SELECT * INTO v_content FROM send_contents WHERE account_id = p_type.account_id AND id = p_type.content_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'The message type % has no template; give the finished parts.', quote_literal(p_type.name)
              USING ERRCODE = 'SO001', COLUMN = 'rendered';
    END IF;
    IF NULLIF(p_request->>'template', '') <> v_content.template THEN
        RAISE EXCEPTION 'Messages of the type % are made from the template %.', quote_literal(p_type.name),
                        quote_literal(v_content.template)
              USING ERRCODE = 'SO001', COLUMN = 'template';
    END IF;
    RETURN v_content;
END
$content$;

-- Gives the dedupe key: the given one, or the one that the type's pattern makes.
CREATE FUNCTION sendonce.key_of(p_type message_types, p_request jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $key$
DECLARE
    v_key text := NULLIF(p_request->>'dedupe_key', '');
    v_missing text[];
BEGIN
    IF v_key IS NOT NULL THEN
        RETURN v_key;
    ELSIF p_type.key_pattern IS NULL THEN
        RAISE EXCEPTION 'The message type % makes no dedupe keys; give one.', quote_literal(p_type.name)
              USING ERRCODE = 'SO001', COLUMN = 'dedupe_key',
                    HINT = 'A good key names the event: order_receipt:1001. Or set a pattern for the type.';
    END IF;
    SELECT string_agg(COALESCE(p.part[1], k.value), '' ORDER BY p.place),
           array_agg(p.part[2] ORDER BY p.place) FILTER (WHERE p.part[2] IS NOT NULL AND COALESCE(btrim(k.value), '') = '')
      INTO v_key, v_missing
      FROM regexp_matches(p_type.key_pattern, '([^{}]+)|\{([^{}]+)\}', 'g') WITH ORDINALITY AS p (part, place)
     CROSS JOIN LATERAL (SELECT p_request->'params' #> string_to_array(p.part[2], '.'),
                                p_request->'entities'->p.part[2]) AS v (param, entity)
     CROSS JOIN LATERAL (
         SELECT CASE WHEN p.part[2] = 'recipient' THEN p_request->>'email_lower'
                     WHEN p.part[2] = 'date' THEN to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')
                     WHEN p.part[2] = 'message_type' THEN p_type.name
                     WHEN p.part[2] = 'event' THEN p_request->>'event'
                     WHEN jsonb_typeof(v.param) IN ('string', 'number', 'boolean') THEN v.param #>> '{}'
                     WHEN jsonb_typeof(v.entity) IN ('string', 'number', 'boolean') THEN v.entity #>> '{}' END) AS k (value);
    IF v_missing IS NOT NULL THEN
        RAISE EXCEPTION 'The dedupe key % needs %.', quote_literal(p_type.key_pattern), array_to_string(v_missing, ', ')
              USING ERRCODE = 'SO001', COLUMN = 'params', HINT = 'Each is one text or number in params or entities.';
    ELSIF length(v_key) > 500 OR v_key ~ '[\u0001-\u001f\u007f]' OR v_key ~ '^campaign:' THEN
        RAISE EXCEPTION 'The pattern % makes a key of more than 500 characters, or with control characters, or of a campaign.',
                        quote_literal(p_type.key_pattern)
              USING ERRCODE = 'SO001', COLUMN = 'params';
    END IF;
    RETURN v_key;
END
$key$;

-- Inserts the message, and its content when that is new. Gives its row; without id when another one holds the key.
CREATE FUNCTION sendonce.reserve(p_type message_types, p_content send_contents, p_request jsonb, p_key text, p_lane text,
                                 p_suppression text, p_holds_key boolean) RETURNS sends
LANGUAGE plpgsql AS $reserve$
DECLARE
    v_due_at timestamptz := GREATEST(COALESCE((p_request->>'send_after')::timestamptz, now()), now());
    v_content_id bigint := p_content.id;
    v_missing text[];
    v_send sends;
BEGIN
    -- Asked of a message that is made, and not of a repeat: a newer version of the template may want more than the one
    -- that the first was made from.
    SELECT array_agg(f ORDER BY f) INTO v_missing FROM unnest(p_content.required_fields) AS f
     WHERE COALESCE(btrim(p_request->'params'->>f, E' \t\r\n\u00a0'), '') = '';
    IF v_missing IS NOT NULL THEN
        RAISE EXCEPTION 'The template % needs %.', quote_literal(p_content.template), array_to_string(v_missing, ', ')
              USING ERRCODE = 'SO001', COLUMN = 'params';
    END IF;
    -- Finished parts are not unique: who hands over equal ones would wait for the end of each other's transactions, which
    -- may be long, and may wait for each other.
    IF v_content_id IS NULL THEN
        INSERT INTO send_contents (account_id, fingerprint, subject, sender, sender_domain, html, text, is_rendered)
        VALUES (p_content.account_id, p_content.fingerprint, p_content.subject, p_content.sender,
                p_content.sender_domain, p_content.html, p_content.text, true)
        RETURNING id INTO v_content_id;
    END IF;
    INSERT INTO sends (account_id, email, email_lower, lane, dedupe_key, holds_key, key_until, message_type, content_id,
                       merge_values, metadata, due_at, first_due_at, expires_at, message_id, correlation_id,
                       status, provider_reply, finished_at)
    VALUES (p_type.account_id, p_request->>'email', p_request->>'email_lower', p_lane, p_key, p_holds_key,
            CASE WHEN p_holds_key THEN now() + make_interval(secs => p_type.window_s) END, p_type.name, v_content_id,
            COALESCE(p_request->'params', '{}'), COALESCE(p_request->'metadata', '{}'), v_due_at, v_due_at,
            (p_request->>'expires_after')::timestamptz,
            '<' || replace(gen_random_uuid()::text, '-', '') || '@' || p_content.sender_domain || '>',
            p_request->>'correlation_id', CASE WHEN p_suppression IS NULL THEN 'queued' ELSE 'suppressed' END,
            'suppressed: ' || p_suppression, CASE WHEN p_suppression IS NOT NULL THEN now() END)
        ON CONFLICT (account_id, dedupe_key) WHERE holds_key DO NOTHING
    RETURNING * INTO v_send;
    RETURN v_send;
END
$reserve$;

-- The one door in. Decides over one request to send: makes its message, or names the one that holds its key, and writes
-- the trigger. Called by console/sends/intake.py for all programs of ours, and by sendonce.send for SQL.
--
-- p_request: email, email_lower, message_type, params, rendered {subject, html, text}, template, dedupe_key, lane,
--   send_after, expires_after (ISO 8601), correlation_id, request_id, trigger_source, code_path, event, entities, metadata
-- p_is_quiet: the caller will wake the workers of the lane in `wakes` when it has committed.
-- Gives: id, status, is_duplicate, decision, message_id, dedupe_key, correlation_id, warnings, differs, first_id, wakes.
--   A decision `refused` (the key is taken by other content) has id null, first_id and differs.
-- Raises: SQLSTATE SO001 for bad input, with the field in COLUMN.
CREATE FUNCTION accept_send(p_account_id bigint, p_request jsonb, p_is_quiet boolean DEFAULT false) RETURNS jsonb
LANGUAGE plpgsql AS $accept$
DECLARE
    v_type message_types;
    v_content send_contents;
    v_first_content send_contents;
    v_send sends;
    v_email_lower text := p_request->>'email_lower';
    v_params jsonb := COALESCE(p_request->'params', '{}');
    v_correlation_id text := COALESCE(NULLIF(p_request->>'correlation_id', ''), gen_random_uuid()::text);
    v_key text;
    v_lane text;
    v_suppression text;
    v_differs text[] := '{}';
    v_warnings text[] := '{}';
    v_decision text;
    v_wakes text;
BEGIN
    PERFORM sendonce.check_request(p_request);
    p_request := p_request || jsonb_build_object('correlation_id', v_correlation_id);
    SELECT * INTO v_type FROM message_types WHERE account_id = p_account_id AND name = p_request->>'message_type';
    IF NOT FOUND OR v_type.name = 'campaign' THEN
        RAISE EXCEPTION 'There is no message type % for single messages in this account.',
                        COALESCE(quote_literal(p_request->>'message_type'), '(none)')
              USING ERRCODE = 'SO001', COLUMN = 'message_type',
                    HINT = 'Make it with: sendonce message-type set NAME --account SLUG --lane LANE --template TEMPLATE';
    END IF;
    v_lane := COALESCE(NULLIF(p_request->>'lane', ''), v_type.lane);
    v_content := sendonce.content_of(v_type, p_request);
    v_key := sendonce.key_of(v_type, p_request);

    SELECT x.kind || ': ' || x.reason INTO v_suppression FROM suppressions x
     WHERE x.account_id = p_account_id AND x.email_lower = v_email_lower AND x.list_id IS NULL;

    -- The insert decides; what is read before it only spares it. A key that is past its window is let go of first: of all
    -- who come at once one update and one insert go through, since the others wait for that row and find it changed.
    FOR v_round IN 1 .. 5 LOOP
        SELECT * INTO v_send FROM sends WHERE account_id = p_account_id AND dedupe_key = v_key AND holds_key;
        IF FOUND AND (v_send.key_until IS NULL OR v_send.key_until > now()) THEN
            v_decision := 'duplicate_suppressed';
            EXIT;
        ELSIF FOUND THEN
            UPDATE sends SET holds_key = false
             WHERE account_id = p_account_id AND id = v_send.id AND holds_key AND key_until <= now();
        END IF;
        v_send := sendonce.reserve(v_type, v_content, p_request, v_key, v_lane, v_suppression, true);
        IF v_send.id IS NOT NULL THEN
            v_decision := CASE WHEN v_suppression IS NULL THEN 'accepted' ELSE 'suppressed' END;
            EXIT;
        END IF;
    END LOOP;
    IF v_decision IS NULL THEN
        RAISE EXCEPTION 'The key % changed hands five times; try again.', quote_literal(v_key)
              USING ERRCODE = 'serialization_failure';
    END IF;

    IF v_decision = 'duplicate_suppressed' THEN
        -- A template's newer version, or another sender of the type, is the same message still; finished parts are not.
        SELECT * INTO v_first_content FROM send_contents
         WHERE account_id = p_account_id AND id = v_send.content_id;
        v_differs := array_remove(ARRAY[
            CASE WHEN v_send.email_lower <> v_email_lower THEN 'to' END,
            CASE WHEN v_send.message_type IS DISTINCT FROM v_type.name THEN 'message_type' END,
            CASE WHEN v_send.merge_values <> v_params THEN 'params' END,
            CASE WHEN v_first_content.is_rendered IS DISTINCT FROM v_content.is_rendered
                   OR v_content.is_rendered AND (v_first_content.subject, v_first_content.html, v_first_content.text)
                                             IS DISTINCT FROM (v_content.subject, v_content.html, v_content.text)
                 THEN 'rendered' END], NULL);
        IF v_type.mode = 'observe' THEN
            v_decision := 'duplicate_observed';
            v_send := sendonce.reserve(v_type, v_content, p_request, v_key, v_lane, v_suppression, false);
        ELSIF v_differs <> '{}' AND v_type.on_conflict = 'refuse' THEN
            v_decision := 'refused';
        END IF;
        IF v_differs = '{params}' THEN
            v_warnings := v_warnings || 'key_too_broad'::text;
        END IF;
    ELSIF p_request->>'dedupe_key' ~* '[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}'
          -- Of the last few that this address got, so that it stays cheap for one that gets thousands.
          AND EXISTS (SELECT FROM (SELECT t.send_id FROM triggers t
                                    WHERE t.account_id = p_account_id AND t.email_lower = v_email_lower
                                      AND t.at > now() - interval '1 day' AND t.decision IN ('accepted', 'suppressed')
                                    ORDER BY t.at DESC LIMIT 20) AS t
                        JOIN sends s ON s.account_id = p_account_id AND s.id = t.send_id
                       WHERE s.message_type = v_type.name AND s.merge_values = v_params AND s.id <> v_send.id
                         AND s.content_id = v_send.content_id) THEN
        v_warnings := v_warnings || 'key_looks_random'::text;
    END IF;

    INSERT INTO triggers (account_id, source, code_path, correlation_id, send_id, decision, message_type, email_lower,
                          template, dedupe_key, request_id, event, entities, differs, warnings)
    VALUES (p_account_id, COALESCE(NULLIF(p_request->>'trigger_source', ''), 'api'),
            COALESCE(p_request->>'code_path', ''), v_correlation_id, v_send.id, v_decision, v_type.name, v_email_lower,
            v_content.template, v_key, p_request->>'request_id', p_request->>'event',
            COALESCE(p_request->'entities', '{}'), NULLIF(v_differs, '{}'), NULLIF(v_warnings, '{}'));
    -- PostgreSQL lets those who notify commit one after the other. Measured on two busy cores, 16 callers: 250 messages a
    -- second when each notifies, 1,200 when of those who are under way at once one does. What is not woken for waits for
    -- the next look, a few seconds at most; an urgent message never does.
    IF v_send.status = 'queued' AND v_send.due_at <= now() AND v_decision IN ('accepted', 'duplicate_observed') THEN
        IF v_lane = 'urgent' AND p_is_quiet THEN
            v_wakes := v_lane;
        ELSIF v_lane = 'urgent' OR pg_try_advisory_xact_lock(501301873, CASE v_lane WHEN 'normal' THEN 1 ELSE 2 END) THEN
            PERFORM pg_notify('sendonce_work', v_lane);
        END IF;
    END IF;
    RETURN jsonb_build_object(
        'id', CASE WHEN v_decision <> 'refused' THEN v_send.id END, 'status', v_send.status,
        'is_duplicate', v_decision = 'duplicate_suppressed', 'decision', v_decision, 'message_id', v_send.message_id,
        'dedupe_key', v_key, 'correlation_id', v_correlation_id, 'warnings', v_warnings, 'differs', v_differs,
        'first_id', v_send.id, 'wakes', v_wakes);
END
$accept$
