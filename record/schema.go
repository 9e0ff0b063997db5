package record

import _ "embed"

// schemaVersion is stored in meta under keySchema. Readers accept versions from oldestSchema
// to schemaVersion; only a run with schemaVersion can be resumed.
//
//	4  details, jobs, polls, marks
//	5  the outcome starved, operations of the kind warm-up
//	6  windows without histograms
const (
	schemaVersion = 6
	oldestSchema  = 4
	starvedSince  = 5
)

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
