package experiment

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

// testCatalog stands for the systems that a binary knows.
func testCatalog() Catalog {
	return Catalog{
		{Name: "nginx", Modes: []string{"start"}, Baseline: true, HTTP: true,
			Summary: "nginx serving files: the raw baseline", Options: []OptionSpec{
				{Name: "workers", Type: "int", Default: "2", Help: "worker processes"},
				{Name: "sendfile", Type: "bool", Default: "true", Help: "use sendfile"},
			}},
		{Name: "static", Modes: []string{"start"}, Baseline: true, HTTP: true, Summary: "embedded file server",
			Options: []OptionSpec{
				{Name: "tls", Type: "bool", Default: "false", Help: "serve over HTTPS"},
			}},
		{Name: "boxo", Modes: []string{"start"}, HTTP: true, Summary: "embedded IPFS node with the trustless gateway",
			Options: []OptionSpec{
				{Name: "chunk", Type: "size", Default: "1MiB", Help: "size of a block"},
				{Name: "format", Type: "enum", Enum: []string{"raw", "car"}, Default: "raw", Help: "what is asked for"},
			}},
		{Name: "boost", Modes: []string{"attach"}, HTTP: true, Summary: "a storage provider's booster-http",
			Options: []OptionSpec{
				{Name: "url", Type: "string", Required: true, Help: "base URL, such as http://provider:7777"},
				{Name: "pieces", Type: "strings", Help: "piece CIDs"},
				{Name: "timeout", Type: "duration", Default: "30s", Help: "of one probe"},
			}},
		{Name: "s3", Modes: []string{"start", "attach"}, HTTP: true, Summary: "any S3 service", Options: []OptionSpec{
			{Name: "endpoint", Type: "string", Help: "URL of the service"},
			{Name: "secret_key", Type: "string", Secret: true, Help: "secret key"},
		}},
		{Name: "mesh", Modes: []string{"start", "attach"}, Spreads: true,
			Summary: "a system whose nodes pass content on", Options: []OptionSpec{
				{Name: "reconnect", Type: "duration", Help: "after which a lost peer is tried again"},
			}},
		{Name: "fanout", Modes: []string{"start"}, Baseline: true, Spreads: true,
			Summary: "all nodes fetch from the seeders"},
		{Name: "ledger", Modes: []string{"start"}, Follows: true, Summary: "a chain whose nodes follow their peers",
			Options: []OptionSpec{
				{Name: "sync_interval", Type: "duration", Default: "5s", Help: "interval at which peers are asked"},
				{Name: "blocks_timeout", Type: "duration", Default: "120s", Help: "for which an answer is waited"},
				{Name: "subscriber", Type: "enum", Enum: []string{"none", "personal", "full"}, Default: "none",
					Help: "what follows the chain"},
				{Name: "batch", Type: "int", Default: "100", Help: "blocks in an answer"},
				{Name: "cache", Type: "size", Default: "64MiB", Help: "of the database"},
				{Name: "fsync", Type: "bool", Default: "true", Help: "wait for the disk"},
			}},
		{Name: "archive", Modes: []string{"start", "attach"}, Follows: true,
			Summary: "another chain, that needs a program", Options: []OptionSpec{
				{Name: "binary", Type: "string", Required: true, Help: "path of the program"},
				{Name: "batch", Type: "int", Default: "10", Help: "blocks in an answer"},
				{Name: "cache", Type: "string", Help: "name of the cache"},
				{Name: "password", Type: "string", Secret: true, Help: "of the interface"},
			}},
		{Name: "tape", Modes: []string{"start"}, Summary: "a system without HTTP"},
	}
}

func mustPlan(t *testing.T, src string, set ...string) *Plan {
	t.Helper()
	e, err := Parse("test.yaml", []byte(src), set, testCatalog())
	if err != nil {
		t.Fatalf("parse:\n%v", err)
	}
	p, err := e.Plan()
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	return p
}

// nearly compares numbers, but for a share.
func nearly(t *testing.T, share float64) func(what string, got, want float64) {
	return func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > share*want {
			t.Errorf("%s: %g, want about %g", what, got, want)
		}
	}
}

// testKnown are some metrics of one scenario, and preconditions.
func testKnown() Known {
	return Known{
		Metrics: func(scenario string) []gate.Metric {
			if scenario != "retrieve" {
				return nil
			}
			return []gate.Metric{{Key: "throughput", Unit: "B/s"}, {Key: "ttfb_p50", Unit: "s"},
				{Key: "ttfb_p95", Unit: "s"}, {Key: "success_rate", Unit: "ratio"},
				{Key: "commits", Unit: "1", Neither: true}}
		},
		Preconditions: []string{"busy", "disk-space", "machine"},
	}
}

const fewRepetitions = "give no 95 % interval of a median"

// warningsOf are those of a plan but that its repetitions are few.
func warningsOf(p *Plan) []string {
	return slices.DeleteFunc(p.Warnings(), func(w string) bool { return strings.Contains(w, fewRepetitions) })
}

// must ends a test at an error that it is not about.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
