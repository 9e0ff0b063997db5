package scenario

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
)

// TestParity holds that the new analysis gives the numbers of the old one, as long as both are there:
// it compares the cells of the new analysis with the facts of the old.
func TestParity(t *testing.T) {
	runs, _ := filepath.Glob("../cmd/plimsoll/testdata/facts/*/plan.json")
	for _, p := range runs {
		from := filepath.Dir(p)
		name := filepath.Base(from)
		dir := filepath.Join(t.TempDir(), name)
		os.Mkdir(dir, 0o755)
		b, _ := os.ReadFile(p)
		os.WriteFile(filepath.Join(dir, "plan.json"), b, 0o644)
		b, _ = os.ReadFile(filepath.Join(from, "run.db.gz"))
		z, _ := gzip.NewReader(bytes.NewReader(b))
		b, _ = io.ReadAll(z)
		os.WriteFile(filepath.Join(dir, "run.db"), b, 0o644)
		r, err := record.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := analysis.ReadPlan(r.Plan(), "")
		if err != nil {
			t.Fatal(err)
		}
		v := ViewOf(plan.Experiment.Scenario)
		if v == nil {
			continue
		}
		f, err := analysis.Load(r, v)
		if err != nil {
			t.Fatal(err)
		}
		res, err := analysis.Analyse(f)
		if err != nil {
			t.Fatal(err)
		}
		js, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		json.Unmarshal(js, &doc)
		got := map[string]bool{}
		var walk func(path string, v any)
		walk = func(path string, v any) {
			switch x := v.(type) {
			case map[string]any:
				for k, y := range x {
					walk(path+"."+k, y)
				}
			case []any:
				for i, y := range x {
					key := fmt.Sprint(i)
					if m, ok := y.(map[string]any); ok {
						for _, k := range []string{"id", "key", "metric", "rule", "trial"} {
							if id, ok := m[k]; ok {
								key = fmt.Sprint(id)
								break
							}
						}
					}
					walk(path+"["+key+"]", y)
				}
			case float64:
				got[strings.TrimPrefix(path, ".")+fmt.Sprintf("=%.6g", x)] = true
			default:
				got[strings.TrimPrefix(path, ".")+"="+fmt.Sprint(x)] = true
			}
		}
		walk("", doc)
		want, _ := os.ReadFile("../cmd/plimsoll/testdata/facts/" + name + ".txt")
		n, missing := 0, 0
		for _, line := range strings.Split(string(want), "\n") {
			path, values, ok := strings.Cut(line, ": ")
			if !ok || !(strings.HasPrefix(path, "cells[") || strings.HasPrefix(path, "overall[") || strings.HasPrefix(path, "run") || strings.HasPrefix(path, "links[") || strings.HasPrefix(path, "gates[") || strings.HasPrefix(path, "invalid[")) {
				continue
			}
			if strings.HasPrefix(name, "sync") && strings.Contains(path, ".ratios") {
				continue // paired by the signed-rank test as everywhere, no longer by Student's alone
			}
			for _, kv := range strings.Fields(values) {
				if key, _, ok := strings.Cut(kv, "="); !ok || key == ">" || key == "rule" || key == "state" || key == "group" || key == "where" || strings.Contains(key, ".") || strings.HasSuffix(path, "classes") || strings.HasSuffix(path, "reasons") {
					continue // values with spaces
				}
				n++
				if !got[path+"."+kv] {
					missing++
					if missing < 12 {
						t.Errorf("%s: %s.%s", name, path, kv)
					}
				}
			}
		}
		compareTables(t, name, res)
		for _, f := range res.Findings {
			t.Logf("   [%s] %s: %s %v // %s", f.Tone, f.Rule, f.Title, f.Evidence, f.Advice)
		}
		t.Logf("%s: %d facts, %d missing; %s [%s]", name, n, missing, res.Verdict.Text, res.Verdict.Tone)
	}
}
