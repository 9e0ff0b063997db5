package docs

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	scenarios "github.com/plimsoll-project/plimsoll/scenario/all"
)

// instruments says what metrics are measured with. Every metric of every scenario
// has one, else TestMetrics fails: add its key here.
var instruments = []struct{ name, how, keys string }{
	{"clock", "monotonic clock of the load generator around each operation; `overhead` and `upload`: around the " +
		"call of the system's client",
		"ttfb_p50 ttfb_p90 ttfb_p99 duration_p50 duration_p90 duration_p99 first_byte_p50 put_p50 get_p50 stat_p50 " +
			"accept_p50 accept_p95 throughput ops_rate offered_rate achieved_share file_bandwidth file_rate"},
	{"outcomes", "how each operation ended, after every byte was compared (except `receive: drop`)",
		"success_rate puts_ended verified verify_failed ok_rate"},
	{"journal", "state of each object, on disk before the work continues",
		"objects accepted adopted failed refused unreadable missing attempts_per_object accepted_bytes stored_objects"},
	{"polls", "questions to the system or its nodes on an absolute schedule; an event happened between the start of " +
		"the poll before and the end of the poll that first reported it",
		"time_last time_median time_p25 time_p75 speed_median first_byte " +
			"start_spread resolution stalls outage recovery recovered sync_time chain_time first_block net_time " +
			"block_rate byte_rate index_lag polls polls_missed poll_gaps poll_p50 " +
			"durable durable_p50 durable_p95 not_durable"},
	{"self-report", "what the system says of itself, unchecked",
		"spent duplicates commits peers_connected useful_share peer_share_max timeouts rerequests"},
	{"storage", "contents of the storage nodes before and after: as they report, and if started by Plimsoll their " +
		"directories",
		"absolute_per_op expansion disk_per_byte entries_per_object inodes_per_object absolute_bytes " +
			"absolute_bandwidth storage_efficiency absolute_per_file"},
	{"link", "counters of IP packets on the emulated links; rate and round trip as measured before the trial",
		"wire_bytes overhead seeder_share load_line load_line_share line line_share link_line ttfb_line " +
			"ttfb_line_share duration_line duration_line_share first_byte_line first_byte_line_share bandwidth_line " +
			"line_median line_median_share speed_line wire_line"},
	{"processes", "`/proc` of each process, once a second (long trials: less often) and at the edges of the load",
		"system_cpu system_cpu_per_gb system_cpu_per_op generator_cpu_per_gb generator_cpu_per_op system_rss_peak " +
			"generator_rss_peak node_rss_peak disk_written write_amplification busiest_cpu harness_cpu emulator_cpu"},
	{"machine", "`/proc/stat`, the threads of the link emulator, `/proc/pressure/io`",
		"others_busy box_cpu emulator_thread io_pressure"},
	{"replay", "the same program on the same blocks from a local file, before the trials",
		"replay replay_cpu"},
}

// TestMetrics holds the page to the definitions.
func TestMetrics(t *testing.T) {
	measured := map[string]string{}
	var table strings.Builder
	table.WriteString("|with|how|\n|---|---|\n")
	for _, i := range instruments {
		for _, k := range strings.Fields(i.keys) {
			if measured[k] != "" {
				t.Errorf("metric %s has two instruments: %s and %s", k, measured[k], i.name)
			}
			measured[k] = i.name
		}
		fmt.Fprintf(&table, "|%s|%s|\n", i.name, i.how)
	}
	used := map[string]bool{}
	first := map[record.Metric]string{} // the scenario whose table has it
	var tables strings.Builder
	for _, s := range scenarios.All() {
		fmt.Fprintf(&tables, "### `%s`\n\n%s\n\n", s.Name(), s.View().Question)
		var rows string
		again := map[string][]string{}
		for _, m := range s.Metrics() {
			used[m.Key] = true
			if measured[m.Key] == "" {
				t.Errorf("metric %s of %s has no instrument: say in docs/metrics_test.go what it is measured with",
					m.Key, s.Name())
			}
			if where := first[m]; where != "" {
				again[where] = append(again[where], "`"+m.Key+"`")
				continue
			}
			first[m] = s.Name()
			rows += fmt.Sprintf("|`%s`|%s|%s%s|%s|%s|\n", m.Key, m.Name, m.Unit, better[m.Better], measured[m.Key],
				cell(m.Help))
		}
		if rows != "" {
			tables.WriteString("|key|name|unit|with|definition|\n|---|---|---|---|---|\n" + rows + "\n")
		}
		for _, where := range slices.Sorted(maps.Keys(again)) {
			fmt.Fprintf(&tables, "As in `%s`: %s.\n\n", where, strings.Join(again[where], ", "))
		}
	}
	for k, i := range measured {
		if !used[k] {
			t.Errorf("metric %s, measured with %s, is in no scenario", k, i)
		}
	}
	generate(t, "metrics.md", map[string]string{"instruments": table.String(),
		"metrics": strings.TrimSuffix(tables.String(), "\n")})
}

var better = map[record.Better]string{record.Lower: "↓", record.Higher: "↑"}

// cell is a text within a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// generate holds the parts <!-- NAME -->…<!-- /NAME --> of a page to what they are
// made from; with -update it writes them.
func generate(t *testing.T, page string, parts map[string]string) {
	t.Helper()
	old := read(t, page)
	text := old
	for name, part := range parts {
		between := regexp.MustCompile(`(?s)<!-- ` + name + ` -->\n.*<!-- /` + name + ` -->`)
		if !between.MatchString(text) {
			t.Fatalf("%s has no part <!-- %s -->", page, name)
		}
		text = between.ReplaceAllLiteralString(text, "<!-- "+name+" -->\n"+part+"<!-- /"+name+" -->")
	}
	if text == old {
		return
	}
	if !*update {
		t.Errorf("%s is not what it is made from; run: go test ./docs -update", page)
		return
	}
	must(t, os.WriteFile(page, []byte(text), 0o644))
}

// put finds what a source hands to a trial's metrics: put("key", …), m["key"] = …, or their keys' beginnings.
var put = regexp.MustCompile(`\bput\("([a-z0-9_]+)"|\["([a-z0-9_]+)"(?:\]| ?\+).* = `)

// TestScenariosRecordWhatIsDefined reads the sources of the scenarios: each number that one hands to a
// trial's metrics is defined, by its scenario, and so on the page; and nothing is defined that none yields.
func TestScenariosRecordWhatIsDefined(t *testing.T) {
	defined, all := map[string]string{}, ""
	for _, s := range scenarios.All() {
		for _, m := range s.Metrics() {
			defined[s.Name()] += " " + m.Key + " "
		}
		all += defined[s.Name()]
	}
	defined["upload"] += defined["collect"] // whose numbers are computed there
	sources, n := "", 0
	for _, path := range found(t, "../scenario/*/*.go", "../scenario/*.go") {
		switch filepath.Base(path) {
		case "view.go", "tables.go", "effects.go":
			continue // they read metrics
		}
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source := read(t, path)
		sources += source
		of := cmp.Or(defined[filepath.Base(filepath.Dir(path))], all)
		for _, m := range put.FindAllStringSubmatch(source, -1) {
			n++
			key := " " + m[1] + m[2]
			if !strings.HasSuffix(key, "_") {
				key += " "
			}
			if !strings.Contains(of, key) {
				t.Errorf("%s: %q is not defined", path, m[1]+m[2])
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d metrics were found in the sources", n)
	}
	for _, key := range strings.Fields(all) {
		before, after, _ := strings.Cut(key, "_")
		parts := []string{key, before + "_", "_" + after, strings.TrimSuffix(key, "_share")}
		if !slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(sources, `"`+p+`"`) }) {
			t.Errorf("%s is defined, and no file yields that", key)
		}
	}
}

// Every reason why a trial is invalid is explained.
func TestReasonsAreDocumented(t *testing.T) {
	text := read(t, "methodology.md")
	for _, why := range record.Reasons() {
		if !regexp.MustCompile("(?m)^\\|.*`" + why + "`.*\\|").MatchString(text) {
			t.Errorf("methodology.md has no row for the reason %s", why)
		}
	}
}
