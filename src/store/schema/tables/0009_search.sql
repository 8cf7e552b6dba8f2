-- Searches by the start of a text read only what matches: an index in the order of bytes has these next to each other.
CREATE INDEX keys_by_id ON keys (id COLLATE "C");
CREATE INDEX keys_by_visible_characters ON keys (visible_start, id COLLATE "C");
CREATE INDEX keys_by_name ON keys (lower(name) COLLATE "C", id COLLATE "C");

DROP INDEX accounts_by_name;
CREATE INDEX accounts_by_name ON accounts (lower(name) COLLATE "C", id COLLATE "C");
CREATE INDEX profiles_by_external_id ON account_profiles (lower(external_id) COLLATE "C", account_id COLLATE "C")
  WHERE external_id IS NOT NULL;
CREATE INDEX profiles_by_email ON account_profiles (lower(email) COLLATE "C", account_id COLLATE "C") WHERE email <> '';
