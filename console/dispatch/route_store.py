"""SQL of which provider of a route has its turn: the one rule, for campaigns and for single messages."""


def chosen(account_id: str, providers: str, tries: str) -> str:
    """Gives an expression for the name of the provider that may have a message after `tries` attempts.

    The first attempt is the route's first provider's, a retry its next one's: only what surely was not accepted is
    tried again by itself. One whose breaker is open is passed over, as long as there is one whose is not.

    Takes: expressions; `providers` an array of names, the first choice first. An account's provider has the account's
           number before its name in provider_states, the installation's own has not.
    """
    return f"""
        CASE WHEN cardinality({providers}) > 1 THEN
            (SELECT choice.name FROM unnest({providers}) WITH ORDINALITY AS choice (name, place)
               LEFT JOIN provider_states b ON b.name IN (choice.name, {account_id} || '/' || choice.name)
              ORDER BY COALESCE(b.breaker = 'open', false),
                       (choice.place - 1 + cardinality({providers}) - {tries} % cardinality({providers}))
                       % cardinality({providers})
              LIMIT 1)
        ELSE {providers}[1] END"""
