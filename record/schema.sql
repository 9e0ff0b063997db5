-- The tables of run.db; docs/run-db.md says what is in each column, and a test holds the two
-- together. A poll is one row: 25 days of them must be read back in seconds; the views show to SQL
-- what is in it.

CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE metrics (
	key    TEXT PRIMARY KEY,
	place  INTEGER NOT NULL,
	name   TEXT NOT NULL,
	unit   TEXT NOT NULL,
	better TEXT NOT NULL,
	help   TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE trials (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	cell     TEXT NOT NULL,
	block    INTEGER NOT NULL,
	warmup   INTEGER NOT NULL,
	state    TEXT NOT NULL,
	epoch_ns INTEGER NOT NULL,
	seconds  REAL,
	invalid  TEXT NOT NULL,
	notes    TEXT NOT NULL,
	error    TEXT NOT NULL
);

CREATE TABLE results (
	trial  INTEGER NOT NULL REFERENCES trials(id),
	metric TEXT NOT NULL,
	value  REAL,
	PRIMARY KEY (trial, metric)
) WITHOUT ROWID;

CREATE TABLE counts (
	trial INTEGER NOT NULL REFERENCES trials(id),
	kind  TEXT NOT NULL,
	name  TEXT NOT NULL,
	n     INTEGER NOT NULL,
	PRIMARY KEY (trial, kind, name)
) WITHOUT ROWID;

CREATE TABLE details (
	trial INTEGER NOT NULL REFERENCES trials(id),
	kind  TEXT NOT NULL,
	name  TEXT NOT NULL,
	place INTEGER NOT NULL,
	value REAL,
	PRIMARY KEY (trial, kind, name)
) WITHOUT ROWID;

CREATE TABLE jobs (
	trial       INTEGER NOT NULL REFERENCES trials(id),
	object      INTEGER NOT NULL,
	state       TEXT NOT NULL,
	attempts    INTEGER NOT NULL,
	name        TEXT NOT NULL,
	ref         TEXT NOT NULL,
	size        INTEGER NOT NULL,
	began_ns    INTEGER NOT NULL,
	accepted_ns INTEGER,
	durable_ns  INTEGER,
	adopted     INTEGER NOT NULL,
	error       TEXT NOT NULL,
	PRIMARY KEY (trial, object)
) WITHOUT ROWID;

CREATE TABLE polls (
	id          INTEGER PRIMARY KEY,
	trial       INTEGER NOT NULL REFERENCES trials(id),
	seq         INTEGER NOT NULL,
	intended_ns INTEGER NOT NULL,
	start_ns    INTEGER NOT NULL,
	end_ns      INTEGER NOT NULL,
	missed      INTEGER NOT NULL,
	calls       TEXT NOT NULL,
	readings    TEXT NOT NULL,
	UNIQUE (trial, seq)
);

CREATE VIEW calls AS
SELECT trial, seq, c.key AS place, json_extract(c.value, '$[0]') AS name,
	json_extract(c.value, '$[1]') AS start_ns, json_extract(c.value, '$[2]') AS end_ns,
	coalesce(json_extract(c.value, '$[3]'), '') AS error
FROM polls, json_each(polls.calls) AS c;

CREATE VIEW readings AS
SELECT trial, seq, r.key AS place, start_ns, end_ns, json_extract(r.value, '$[0]') AS name, json_extract(r.value, '$[1]') AS value,
	coalesce(json_extract(r.value, '$[2]'), '') AS exact,
	coalesce(json_extract(r.value, '$[3]'), '') AS bad
FROM polls, json_each(polls.readings) AS r;

CREATE TABLE marks (
	trial     INTEGER NOT NULL REFERENCES trials(id),
	seq       INTEGER PRIMARY KEY,
	node      INTEGER NOT NULL,
	before_ns INTEGER NOT NULL,
	start_ns  INTEGER NOT NULL,
	end_ns    INTEGER NOT NULL,
	verified  INTEGER NOT NULL,
	written   INTEGER,
	received  INTEGER,
	sent      INTEGER,
	peers     INTEGER,
	complete  INTEGER NOT NULL,
	trouble   TEXT NOT NULL
);
CREATE INDEX marks_by_trial ON marks (trial, seq);

CREATE TABLE summaries (
	trial    INTEGER PRIMARY KEY REFERENCES trials(id),
	ops      INTEGER NOT NULL,
	bytes    INTEGER NOT NULL,
	ok_bytes INTEGER NOT NULL,
	in_flight_bytes INTEGER NOT NULL,
	first_ns INTEGER NOT NULL,
	last_ns  INTEGER NOT NULL
);

CREATE TABLE histograms (
	trial    INTEGER NOT NULL REFERENCES trials(id),
	measure  TEXT NOT NULL,
	censored INTEGER NOT NULL,
	overflow INTEGER NOT NULL,
	hdr      TEXT NOT NULL,
	PRIMARY KEY (trial, measure, censored)
) WITHOUT ROWID;

CREATE TABLE ops (
	id       INTEGER PRIMARY KEY,
	trial    INTEGER NOT NULL REFERENCES trials(id),
	seq      INTEGER NOT NULL,
	n        INTEGER NOT NULL,
	first_ns INTEGER NOT NULL,
	last_ns  INTEGER NOT NULL,
	data     BLOB NOT NULL,
	UNIQUE (trial, seq)
);

CREATE TABLE windows (
	trial       INTEGER NOT NULL REFERENCES trials(id),
	second      INTEGER NOT NULL,
	ok          INTEGER NOT NULL,
	refused     INTEGER NOT NULL,
	error       INTEGER NOT NULL,
	truncated   INTEGER NOT NULL,
	wrong_bytes INTEGER NOT NULL,
	stalled     INTEGER NOT NULL,
	deadline    INTEGER NOT NULL,
	in_flight   INTEGER NOT NULL,
	cancelled   INTEGER NOT NULL,
	starved     INTEGER NOT NULL,
	bytes       INTEGER NOT NULL,
	PRIMARY KEY (trial, second)
) WITHOUT ROWID;

CREATE TABLE samples (
	id          INTEGER PRIMARY KEY,
	trial       INTEGER NOT NULL REFERENCES trials(id),
	start_ns    INTEGER NOT NULL,
	end_ns      INTEGER NOT NULL,
	process     TEXT NOT NULL,
	role        TEXT NOT NULL,
	pid         INTEGER NOT NULL,
	cpu         REAL,
	rss         REAL,
	read_bytes  REAL,
	write_bytes REAL
);
CREATE INDEX samples_by_trial ON samples (trial, id);

CREATE TABLE links (
	id         INTEGER PRIMARY KEY,
	trial      INTEGER NOT NULL REFERENCES trials(id),
	from_host  TEXT NOT NULL,
	to_host    TEXT NOT NULL,
	emulator   TEXT NOT NULL,
	congestion TEXT NOT NULL,
	want_rtt   REAL,
	rtt        REAL,
	rtt_p99    REAL,
	want_rate  REAL,
	rate       REAL,
	want_loss  REAL,
	loss       REAL,
	lateness   REAL,
	tolerance  REAL,
	ok         INTEGER NOT NULL,
	why        TEXT NOT NULL
);
CREATE INDEX links_by_trial ON links (trial, id);

CREATE TABLE events (
	id      INTEGER PRIMARY KEY,
	trial   INTEGER NOT NULL,
	at_ns   INTEGER NOT NULL,
	kind    TEXT NOT NULL,
	what    TEXT NOT NULL,
	detail  TEXT NOT NULL,
	took_ns INTEGER NOT NULL
);
