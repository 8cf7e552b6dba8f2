-- The timeline of the source when it gave up the lanes. On another one, after a failover, it may lack the confirmation that the target
-- has.
ALTER TABLE cell_splits ADD COLUMN timeline text;
