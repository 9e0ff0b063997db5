package record

import _ "embed"

// schemaVersion is kept in meta under keySchema. A reader refuses a newer one
// and reads older ones from oldestSchema on; only a run of this one is resumed.
//
//	4  details, jobs, polls, marks
//	5  the outcome starved, operations of the kind warm-up
//	6  windows without histograms
const (
	schemaVersion = 6
	oldestSchema  = 4
	starvedSince  = 5
)

// Keys that the package itself keeps in meta.
const (
	keySchema = "record.schema"      // schemaVersion
	keyPlan   = "record.plan_sha256" // of the bytes of plan.json
	keyID     = "record.id"          // see Reader.ID
)

//go:embed schema.sql
var schema string

// ofTrial are the tables that hold what one trial recorded, beside trials.
var ofTrial = [...]string{"results", "counts", "details", "summaries", "histograms", "ops", "windows", "samples",
	"links", "events", "jobs", "polls", "marks"}
