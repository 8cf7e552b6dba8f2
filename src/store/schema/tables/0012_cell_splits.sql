-- Lanes that move to a promoted standby: see docs/decisions/0022-cells.md.

-- The name of the cell, from its first split on. A promoted standby has the name of the cell that it is a copy of until it claims
-- its lanes, so no server uses it before.
CREATE TABLE cell_name (
  name text NOT NULL,
  is_only_row boolean PRIMARY KEY DEFAULT true,
  CONSTRAINT cell_name_is_one_row CHECK (is_only_row)
);

-- begun: nothing has changed. released: the source gave up the lanes and can take them back. confirmed: only the target may claim
-- them. The copy of the row at the target decides whether it may.
CREATE TABLE cell_splits (
  id text PRIMARY KEY,
  target text NOT NULL,
  lanes smallint[] NOT NULL,
  state text NOT NULL,
  changed_at timestamptz NOT NULL,
  CONSTRAINT split_state_known CHECK (state IN ('begun', 'released', 'confirmed', 'finished', 'returned'))
);
CREATE UNIQUE INDEX one_unfinished_split ON cell_splits ((true)) WHERE state IN ('begun', 'released', 'confirmed');

-- The names of the cells that the server would use, as JSON.
ALTER TABLE servers ADD COLUMN cells text NOT NULL DEFAULT '[]';

-- Its text has another result.
DROP FUNCTION IF EXISTS cell_state();
