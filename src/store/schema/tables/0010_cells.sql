-- Lanes in several cells: see docs/decisions/0022-cells.md. A cell owns the lanes whose is_owned is true.

-- Empty in a cell that owns all lanes, so that admission checks the lanes of a batch without reading them.
CREATE INDEX lanes_elsewhere ON lanes (lane) WHERE NOT is_owned;

-- The chain of the events that concern no account. They stay in the first cell, so they belong to none of the 1,024 lanes.
INSERT INTO operator_chains (lane) VALUES (1024);

-- Plans, operators and prices are changed in the first cell and copied to the others. The version increases with each change.
CREATE TABLE shared_data (
  version bigint NOT NULL,
  is_only_row boolean PRIMARY KEY DEFAULT true,
  CONSTRAINT shared_data_is_one_row CHECK (is_only_row)
);
INSERT INTO shared_data VALUES (1);
