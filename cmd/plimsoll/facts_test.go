package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/internal/ui"
)

var updateFacts = flag.Bool("update-facts", false, "write testdata/facts/*.txt anew")

// prose are the fields of summary.json and of compare's JSON that hold words or
// name a moment: the facts are all the others.
var prose = map[string]bool{
	"text": true, "title": true, "question": true, "description": true, "why": true, "warn": true, "words": true,
	"notes": true, "answer": true, "environment": true, "advice": true, "action": true, "evidence": true,
	"load_line": true, "help": true,
	"name": true, "dir": true, "started": true, "plan_hash": true, "stopped": true, "metrics_doc": true,
	"differs": true,
	"label":   true, "factors": true, "plimsoll": true, "what": true, "new_dir": true, "caption": true,
}

// TestFacts holds what a report claims, not how it says it: numbers with their
// intervals, findings with their tone, validity, gates and the exit status, of runs
// that are committed. A change of internals must leave every line as it is; a
// change of a number is accepted with -update-facts and explained in its commit.
func TestFacts(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{}
	for _, name := range facts.Names(t) {
		dirs[name] = facts.Unpack(t, name)
		t.Run(name, func(t *testing.T) {
			status := run([]string{"report", dirs[name]}, strings.NewReader(""), io.Discard, io.Discard)
			checkFacts(t, name, status, mustRead(t, filepath.Join(dirs[name], "summary.json")))
		})
	}
	for _, other := range []string{"retrieve-slower", "retrieve-killed", "retrieve-gates"} {
		t.Run("compare-"+other, func(t *testing.T) {
			var out bytes.Buffer
			status := run([]string{"compare", dirs["retrieve"], dirs[other], "--json", "--gate",
				"no worse than BASE by 5%"},
				strings.NewReader(""), &out, io.Discard)
			checkFacts(t, "compare-"+other, status, out.Bytes())
		})
	}
}

// A load test is one trial, so no gate on it is decided.
func TestGatesOnALoadTest(t *testing.T) {
	var out, errs bytes.Buffer
	status := run([]string{"report", facts.Unpack(t, "upload"), "--gate", "file_bandwidth > 1B/s"},
		strings.NewReader(""), &out, &errs)
	if status != int(ui.CodeUndecided) || !strings.Contains(out.String(), "a gate needs 5 trials") {
		t.Errorf("status %d\n%s%s", status, out.String(), errs.String())
	}
}

func checkFacts(t *testing.T, name string, status int, doc []byte) {
	t.Helper()
	lines := []string{fmt.Sprintf("exit status %d", status)}
	for d := json.NewDecoder(bytes.NewReader(doc)); ; {
		var v any
		err := d.Decode(&v)
		if err == io.EOF {
			break
		}
		must(t, err)
		factsOf(&lines, "", v)
	}
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", "facts", name+".txt")
	if *updateFacts {
		must(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want := string(mustRead(t, path))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the facts differ (- committed, + now; accept with go test ./cmd/plimsoll -run TestFacts "+
			"-update-facts):\n%s", path, diff)
	}
}

// factsOf appends a line for each object below v: its path, and its values that are
// no objects themselves; numbers have six digits.
func factsOf(lines *[]string, path string, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		list, _ := v.([]any)
		for i, x := range list {
			factsOf(lines, path+"["+factsKey(i, x)+"]", x)
		}
		return
	}
	if head, rows := m["head"], m["rows"]; head != nil {
		tableFacts(lines, path, head.([]any), rows)
		return
	}
	var values, below []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		switch x := m[k].(type) {
		case map[string]any, []any:
			below = append(below, k)
		case float64:
			values = append(values, fmt.Sprintf("%s=%.6g", k, x))
		default:
			if !prose[k] {
				s := fmt.Sprint(x)
				if filepath.IsAbs(s) { // a run is named by its directory
					s = filepath.Base(s)
				}
				values = append(values, k+"="+s)
			}
		}
	}
	if len(values) > 0 {
		*lines = append(*lines, path+": "+strings.Join(values, " "))
	}
	for _, k := range below {
		if !prose[k] && !(path == "" && k == "metrics") { // those are the metrics' documentation
			factsOf(lines, strings.TrimPrefix(path+"."+k, "."), m[k])
		}
	}
}

// tableFacts appends a line for each row of a table: what its columns hold, numbers
// with their interval.
func tableFacts(lines *[]string, path string, head []any, rows any) {
	all, _ := rows.([]any)
	for i, row := range all {
		line := fmt.Sprintf("%s.rows[%d]:", path, i)
		for j, entry := range row.([]any) {
			e := entry.(map[string]any)
			number := func(k string) string {
				if v, ok := e[k].(float64); ok {
					return fmt.Sprintf("%.6g", v)
				}
				return ""
			}
			text, _ := e["text"].(string)
			value := text + number("value")
			if lo, hi := number("lo"), number("hi"); lo+hi != "" {
				value += "[" + lo + "," + hi + "]"
			}
			if tone, ok := e["tone"]; ok {
				value += fmt.Sprintf("(%v)", tone)
			}
			if value != "" {
				line += fmt.Sprintf(" %v=%s", head[j].(map[string]any)["key"], value)
			}
		}
		*lines = append(*lines, line)
	}
}

// factsKey names an element by what identifies it, so that one more does not
// rename all that follow.
func factsKey(i int, x any) string {
	m, _ := x.(map[string]any)
	for _, k := range []string{"id", "key", "metric", "rule", "trial"} {
		if v, ok := m[k]; ok {
			return fmt.Sprint(v)
		}
	}
	return fmt.Sprint(i)
}
