package experiment

import (
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/internal/option"
)

// testCatalog is a catalog of systems for tests.
func testCatalog() Catalog {
	plain := func(name, typ, value, help string) option.Option {
		return option.Option{Name: name, Type: typ, Default: value, Help: help}
	}
	secret := func(name, help string) option.Option {
		return option.Option{Name: name, Type: "string", Secret: true, Help: help}
	}
	needs := func(name, help string) option.Option {
		return option.Option{Name: name, Type: "string", Required: true, Help: help}
	}
	words := func(name, help string, all ...string) option.Option {
		return option.Option{Name: name, Type: "enum", Enum: all, Default: all[0], Help: help}
	}
	start, attach, both := []string{"start"}, []string{"attach"}, []string{"start", "attach"}
	return Catalog{
		{Name: "nginx", Modes: start, Baseline: true, Can: []string{"http"}, Options: []option.Option{
			plain("workers", "int", "2", "worker processes"), plain("sendfile", "bool", "true", "use sendfile")}},
		{Name: "static", Modes: start, Baseline: true, Can: []string{"http"}, Options: []option.Option{
			plain("tls", "bool", "false", "serve over HTTPS")}},
		{Name: "boxo", Modes: start, Can: []string{"http"}, Options: []option.Option{
			plain("chunk", "size", "1MiB", "size of a block"), words("format", "what is asked for", "raw", "car")}},
		{Name: "boost", Modes: attach, Can: []string{"http"}, Options: []option.Option{
			needs("url", "base URL, such as http://provider:7777"), plain("pieces", "strings", "", "piece CIDs"),
			plain("timeout", "duration", "30s", "of one probe")}},
		{Name: "s3", Modes: both, Can: []string{"http"}, Options: []option.Option{
			plain("endpoint", "string", "", "URL of the service"), secret("secret_key", "secret key")}},
		{Name: "mesh", Modes: both, Can: []string{"spread"}, Options: []option.Option{
			plain("reconnect", "duration", "", "after which a lost peer is tried again")}},
		{Name: "fanout", Modes: start, Baseline: true, Can: []string{"spread"}},
		{Name: "ledger", Modes: start, Can: []string{"follow"}, Options: []option.Option{
			plain("sync_interval", "duration", "5s", "interval at which peers are asked"),
			plain("blocks_timeout", "duration", "120s", "for which an answer is waited"),
			words("subscriber", "what follows the chain", "none", "personal", "full"),
			plain("batch", "int", "100", "blocks in an answer"), plain("cache", "size", "64MiB", "of the database"),
			plain("fsync", "bool", "true", "wait for the disk")}},
		{Name: "archive", Modes: both, Can: []string{"follow"}, Options: []option.Option{
			needs("binary", "path of the program"), plain("batch", "int", "10", "blocks in an answer"),
			plain("cache", "string", "", "name of the cache"), secret("password", "of the interface")}},
		{Name: "tape", Modes: start},
	}
}

func mustPlan(t *testing.T, src string, set ...string) *Plan {
	t.Helper()
	e, err := Parse("test.yaml", []byte(src), set, testCatalog())
	must(t, err)
	p, err := e.Plan()
	must(t, err)
	return p
}

// testKnown returns some metrics of one scenario, and preconditions.
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

// warningsOf returns the warnings of a plan except the one about few repetitions.
func warningsOf(p *Plan) []string {
	return slices.DeleteFunc(p.Warnings(), func(w string) bool { return strings.Contains(w, fewRepetitions) })
}

// must fails a test at an unexpected error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
