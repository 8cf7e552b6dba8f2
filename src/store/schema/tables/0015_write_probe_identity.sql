-- citus_schema_move copies a table by logical replication, which needs the identity of changed rows. Two probes may have the same time,
-- so there is no key.
ALTER TABLE write_probes REPLICA IDENTITY FULL;
