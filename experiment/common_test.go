package experiment

import (
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

// testCatalog stands for the systems that a binary knows.
func testCatalog() Catalog {
	option := func(name, typ, value, help string) OptionSpec {
		return OptionSpec{Name: name, Type: typ, Default: value, Help: help}
	}
	secret := func(name, help string) OptionSpec {
		return OptionSpec{Name: name, Type: "string", Secret: true, Help: help}
	}
	needs := func(name, help string) OptionSpec {
		return OptionSpec{Name: name, Type: "string", Required: true, Help: help}
	}
	words := func(name, help string, all ...string) OptionSpec {
		return OptionSpec{Name: name, Type: "enum", Enum: all, Default: all[0], Help: help}
	}
	start, attach, both := []string{"start"}, []string{"attach"}, []string{"start", "attach"}
	return Catalog{
		{Name: "nginx", Modes: start, Baseline: true, HTTP: true, Options: []OptionSpec{
			option("workers", "int", "2", "worker processes"), option("sendfile", "bool", "true", "use sendfile")}},
		{Name: "static", Modes: start, Baseline: true, HTTP: true, Options: []OptionSpec{
			option("tls", "bool", "false", "serve over HTTPS")}},
		{Name: "boxo", Modes: start, HTTP: true, Options: []OptionSpec{
			option("chunk", "size", "1MiB", "size of a block"), words("format", "what is asked for", "raw", "car")}},
		{Name: "boost", Modes: attach, HTTP: true, Options: []OptionSpec{
			needs("url", "base URL, such as http://provider:7777"), option("pieces", "strings", "", "piece CIDs"),
			option("timeout", "duration", "30s", "of one probe")}},
		{Name: "s3", Modes: both, HTTP: true, Options: []OptionSpec{
			option("endpoint", "string", "", "URL of the service"), secret("secret_key", "secret key")}},
		{Name: "mesh", Modes: both, Spreads: true, Options: []OptionSpec{
			option("reconnect", "duration", "", "after which a lost peer is tried again")}},
		{Name: "fanout", Modes: start, Baseline: true, Spreads: true},
		{Name: "ledger", Modes: start, Follows: true, Options: []OptionSpec{
			option("sync_interval", "duration", "5s", "interval at which peers are asked"),
			option("blocks_timeout", "duration", "120s", "for which an answer is waited"),
			words("subscriber", "what follows the chain", "none", "personal", "full"),
			option("batch", "int", "100", "blocks in an answer"), option("cache", "size", "64MiB", "of the database"),
			option("fsync", "bool", "true", "wait for the disk")}},
		{Name: "archive", Modes: both, Follows: true, Options: []OptionSpec{
			needs("binary", "path of the program"), option("batch", "int", "10", "blocks in an answer"),
			option("cache", "string", "", "name of the cache"), secret("password", "of the interface")}},
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
