package record

// schemaVersion is kept in meta under keySchema. A reader refuses a newer one
// and reads older ones from oldestSchema on; a resumed run is brought up to it.
//
//	1  the first
//	2  details
const (
	schemaVersion = 2
	oldestSchema  = 1
)

// Keys that the package itself keeps in meta; all begin with the same word.
const (
	keySchema = "record.schema"      // schemaVersion
	keyPlan   = "record.plan_sha256" // of the bytes of plan.json
	keyPrefix = "record."
)

// schema is documented column by column in docs/run-db.md; a test holds the
// two together.
const schema = `
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

` + detailsTable + `
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
	trial             INTEGER NOT NULL REFERENCES trials(id),
	second            INTEGER NOT NULL,
	ok                INTEGER NOT NULL,
	refused           INTEGER NOT NULL,
	error             INTEGER NOT NULL,
	truncated         INTEGER NOT NULL,
	wrong_bytes       INTEGER NOT NULL,
	stalled           INTEGER NOT NULL,
	deadline          INTEGER NOT NULL,
	in_flight         INTEGER NOT NULL,
	cancelled         INTEGER NOT NULL,
	bytes             INTEGER NOT NULL,
	ttfb_overflow     INTEGER NOT NULL,
	ttfb_hdr          TEXT,
	duration_overflow INTEGER NOT NULL,
	duration_hdr      TEXT,
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
	pss         REAL,
	read_bytes  REAL,
	write_bytes REAL,
	fds         REAL,
	net_rx      REAL,
	net_tx      REAL,
	threads     REAL
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

CREATE TABLE events (
	id      INTEGER PRIMARY KEY,
	trial   INTEGER NOT NULL,
	at_ns   INTEGER NOT NULL,
	kind    TEXT NOT NULL,
	what    TEXT NOT NULL,
	detail  TEXT NOT NULL,
	took_ns INTEGER NOT NULL
);
`

// detailsTable came with version 2.
const detailsTable = `
CREATE TABLE IF NOT EXISTS details (
	trial INTEGER NOT NULL REFERENCES trials(id),
	kind  TEXT NOT NULL,
	name  TEXT NOT NULL,
	place INTEGER NOT NULL,
	value REAL,
	PRIMARY KEY (trial, kind, name)
) WITHOUT ROWID;
`

// ofTrial are the tables that hold what one trial recorded, beside trials.
var ofTrial = [...]string{"results", "counts", "details", "summaries", "histograms", "ops", "windows", "samples", "links", "events"}
