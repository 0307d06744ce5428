-- The store of schema 7, as the scripts of the versions before the first release made it.
CREATE TABLE callwright_schema (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT callwright_schema_pkc PRIMARY KEY (version_num)
);
CREATE TABLE responses (
    id TEXT NOT NULL,
    parent_id TEXT,
    conversation_id TEXT,
    created_at BIGINT NOT NULL,
    hidden BOOLEAN NOT NULL,
    body BLOB NOT NULL,
    input BLOB NOT NULL,
    output BLOB NOT NULL,
    owner TEXT DEFAULT '' NOT NULL,
    maker TEXT,
    PRIMARY KEY (id),
    FOREIGN KEY(parent_id) REFERENCES responses (id)
);
CREATE INDEX responses_parent ON responses (parent_id);
CREATE INDEX responses_created ON responses (created_at);
CREATE TABLE items (
    number INTEGER NOT NULL,
    item_id TEXT NOT NULL,
    response_id TEXT NOT NULL,
    PRIMARY KEY (number),
    FOREIGN KEY(response_id) REFERENCES responses (id) ON DELETE CASCADE
);
CREATE INDEX items_item ON items (item_id);
CREATE INDEX items_response ON items (response_id);
CREATE TABLE conversations (
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    metadata BLOB NOT NULL,
    owner TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE conversation_items (
    conversation_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    item_id TEXT,
    response_id TEXT,
    body BLOB NOT NULL,
    PRIMARY KEY (conversation_id, position),
    FOREIGN KEY(conversation_id) REFERENCES conversations (id) ON DELETE CASCADE
);
CREATE INDEX conversation_items_item ON conversation_items (item_id);
CREATE TABLE makers (
    id TEXT NOT NULL,
    place TEXT NOT NULL,
    pid BIGINT NOT NULL,
    started TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX responses_maker ON responses (maker);
CREATE TABLE kept_items (
    owner TEXT NOT NULL,
    model TEXT NOT NULL,
    "key" TEXT NOT NULL,
    used_at BIGINT NOT NULL,
    size BIGINT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (owner, model, "key")
);
CREATE INDEX kept_items_used ON kept_items (used_at, size);
CREATE TABLE sessions (
    id TEXT NOT NULL,
    size BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    holder TEXT,
    place TEXT,
    pid BIGINT,
    started TEXT,
    seen_at BIGINT,
    PRIMARY KEY (id)
);
CREATE INDEX sessions_changed ON sessions (changed_at);
CREATE TABLE session_messages (
    session_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session_id, position),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE TABLE limits (
    "key" TEXT NOT NULL,
    kind TEXT NOT NULL,
    used DOUBLE NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY ("key", kind)
);
CREATE TABLE limits_users (
    gateway TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (gateway)
);
CREATE TABLE spending (
    "key" TEXT NOT NULL,
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    requests BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    PRIMARY KEY ("key", day, model)
);
CREATE INDEX spending_model ON spending (model, day);
CREATE INDEX spending_day ON spending (day);
CREATE TABLE spenders (
    process TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    batch BIGINT NOT NULL,
    granted BLOB NOT NULL,
    PRIMARY KEY (process)
);
INSERT INTO callwright_schema VALUES ('0007');
INSERT INTO responses (id, created_at, hidden, body, input, output, owner) VALUES (
    'a', 1000, false, CAST('{"id":"a"}' AS BLOB),
    CAST('[{"id":"in_a"}]' AS BLOB), CAST('[{"id":"out_a"}]' AS BLOB), ''
);
INSERT INTO items (item_id, response_id) VALUES ('in_a', 'a'), ('out_a', 'a');
