package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
		"time_last time_median time_p25 time_p75 speed_median disk_median disk_last first_byte " +
			"start_spread resolution stalls outage recovery recovered sync_time chain_time first_block net_time " +
			"block_rate byte_rate index_lag polls polls_missed poll_gaps poll_p50 poll_first_quarter " +
			"poll_last_quarter durable durable_p50 durable_p95 not_durable"},
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
	old, err := os.ReadFile(page)
	must(t, err)
	text := string(old)
	for name, part := range parts {
		between := regexp.MustCompile(`(?s)<!-- ` + name + ` -->\n.*<!-- /` + name + ` -->`)
		if !between.MatchString(text) {
			t.Fatalf("%s has no part <!-- %s -->", page, name)
		}
		text = between.ReplaceAllLiteralString(text, "<!-- "+name+" -->\n"+part+"<!-- /"+name+" -->")
	}
	if text == string(old) {
		return
	}
	if !*update {
		t.Errorf("%s is not what it is made from; run: go test ./docs -update", page)
		return
	}
	must(t, os.WriteFile(page, []byte(text), 0o644))
}

// TestScenariosRecordWhatIsDefined reads the sources of the scenarios: each number
// that they hand to a trial's metrics is defined, by the scenario that the file
// belongs to, and so on the page; and nothing is defined that no file yields.
func TestScenariosRecordWhatIsDefined(t *testing.T) {
	defined := map[string]map[string]bool{}
	for _, s := range scenarios.All() {
		defined[s.Name()] = map[string]bool{}
		for _, m := range s.Metrics() {
			defined[s.Name()][m.Key] = true
		}
	}
	shared, err := filepath.Glob("../scenario/*.go")
	must(t, err)
	files, err := filepath.Glob("../scenario/*/*.go")
	must(t, err)
	files = append(files, shared...)
	words := map[string]bool{}
	n := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		switch filepath.Base(path) {
		case "view.go", "rules.go", "tables.go", "effects.go":
			continue // they read metrics
		}
		keys, literals := keysIn(t, path)
		for _, w := range literals {
			words[w] = true
		}
		of := owners(path)
		for _, key := range keys {
			n++
			known := slices.ContainsFunc(of, func(s string) bool { return hasKey(defined[s], key) })
			if len(of) > 0 && !known {
				t.Errorf("%s: %q is no metric of %s", path, key, strings.Join(of, " or "))
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d metrics were found in the sources", n)
	}
	for s, keys := range defined {
		for key := range keys {
			before, after, _ := strings.Cut(key, "_")
			whole, _ := strings.CutSuffix(key, "_share") // key + "_share" of what is a word itself
			if !words[key] && !words[before+"_"] && !words["_"+after] && !words[whole] {
				t.Errorf("%s defines %s, and no file yields that", s, key)
			}
		}
	}
}

// hasKey reports whether a key, or the beginning of one ("ttfb_"), is defined.
func hasKey(defined map[string]bool, key string) bool {
	return defined[key] || strings.HasSuffix(key, "_") &&
		slices.ContainsFunc(slices.Collect(maps.Keys(defined)),
			func(d string) bool { return strings.HasPrefix(d, key) })
}

// owners are the scenarios that a file belongs to; none: it is of all.
func owners(path string) []string {
	file := filepath.Base(path)
	if file == "polls.go" {
		return []string{"upload", "collect"}
	}
	for _, s := range scenarios.All() {
		if filepath.Base(filepath.Dir(path)) == s.Name() || file == s.Name()+".go" ||
			strings.HasPrefix(file, s.Name()+"_") {
			return []string{s.Name()}
		}
	}
	return nil
}

// keysIn are the constant keys that a file puts into metrics: put("key", …),
// m["key"] = …, map[string]float64{"key": …}; and all its words but the keys of
// definitions.
func keysIn(t *testing.T, path string) (keys, words []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	must(t, err)
	add := func(e ast.Expr) {
		if b, ok := e.(*ast.BinaryExpr); ok {
			e = b.X // "ttfb_" + …
		}
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			key, _ := strconv.Unquote(l.Value)
			keys = append(keys, key)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			return !named(n.Key, "Key")
		case *ast.BasicLit:
			if word, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				words = append(words, word)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "put" && len(n.Args) > 1 {
				add(n.Args[0])
			}
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				if i, ok := l.(*ast.IndexExpr); ok {
					add(i.Index)
				}
			}
		case *ast.CompositeLit:
			if m, ok := n.Type.(*ast.MapType); ok && named(m.Key, "string") && named(m.Value, "float64") {
				for _, e := range n.Elts {
					add(e.(*ast.KeyValueExpr).Key)
				}
			}
		}
		return true
	})
	return keys, words
}

func named(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}

// Every reason why a trial is invalid is explained.
func TestReasonsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("methodology.md")
	must(t, err)
	for _, why := range record.Reasons() {
		if !regexp.MustCompile("(?m)^\\|.*`" + why + "`.*\\|").Match(text) {
			t.Errorf("methodology.md has no row for the reason %s", why)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
