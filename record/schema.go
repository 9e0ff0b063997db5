package record

import _ "embed"

// schemaVersion is stored in meta under keySchema: only such runs are read. No other version was released.
const schemaVersion = 7

// Keys of the package itself in meta.
const (
	keySchema = "record.schema"      // schemaVersion
	KeyPlan   = "record.plan_sha256" // of the bytes of plan.json
	keyID     = "record.id"          // see Reader.ID
)

//go:embed schema.sql
var schema string

// ofTrial are the tables with the records of trials, besides the table trials.
var ofTrial = [...]string{"results", "counts", "details", "summaries", "histograms", "ops", "windows", "samples",
	"links", "events", "jobs", "polls", "marks"}
