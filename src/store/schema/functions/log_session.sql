-- Records a sign-in or a sign-out of an operator.
CREATE OR REPLACE FUNCTION log_session(p_operator operators, p_method text, p_details json, p_request_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM append_operator_event(
    json_populate_record(NULL::caller, json_build_object('id', p_operator.id, 'name', p_operator.name, 'method', p_method, 'reason', '',
      'details', p_details, 'request_id', p_request_id)),
    no_lane(), p_operator.id, '', 'ok');
END
$$;
