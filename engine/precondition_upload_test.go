package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// paid is a system that runs elsewhere and pays for what it stores.
type paid struct {
	mem.System
	can []string
}

func (p paid) Info() system.Info {
	i := p.System.Info()
	i.Modes, i.Can = []system.Mode{system.Attach}, p.can
	return i
}

const paidExperiment = `
scenario: upload
systems: [{use: mem, mode: attach}]
data: {size: 1kB}
upload: {}
allow: [write, spend]
%s`

func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name, skip, more string
		can              []string
		want             []string // parts of the problems
		blocking         int
	}{
		{"spending without an end", "", "", []string{"put", "cost"}, []string{"budget: mem: it spends money on " +
			"storage"}, 1},
		{"skipped", ", budget", "", []string{"put", "cost"}, nil, 0},
		{"with an end", "", "exit: {max_spend: 5}", []string{"put", "cost"}, nil, 0},
		{"an end that cannot come", "", "exit: {max_spend: 5}", []string{"put"},
			[]string{"budget: exit.max_spend can never be met"}, 1},
	} {
		plan := mustPlan(t, fmt.Sprintf(paidExperiment, c.more), "skip=machine"+c.skip)
		cfg := Config{Plan: plan, Systems: []system.System{paid{can: c.can}}}
		all := problems(t.Context(), cfg, ourPlace(cfg), func(p precondition) bool {
			return p.name == "budget"
		})
		var texts []string
		for _, p := range all {
			texts = append(texts, p.Name+": "+p.What)
			if p.Blocking && p.Hint == "" {
				t.Errorf("%s: no hint: %+v", c.name, p)
			}
		}
		if len(texts) != len(c.want) {
			t.Errorf("%s: got %q, want %q", c.name, texts, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(texts[i], want) {
				t.Errorf("%s: got %q, want %q", c.name, texts[i], want)
			}
		}
		if len(Blocking(all)) != c.blocking {
			t.Errorf("%s: %d problems block the run, want %d", c.name, len(Blocking(all)), c.blocking)
		}
	}
}

func TestDataReadable(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "set")
	must(t, os.Mkdir(dir, 0o755))
	for i := range 9 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("file-", i)), []byte("x"), 0o644))
	}
	check := func(directory string) []Problem {
		plan := &experiment.Plan{Cells: []experiment.Cell{{Data: experiment.Data{Directory: directory, Copies: 3}}}}
		return checkData(t.Context(), Config{Plan: plan, Base: base}, nodePlace{})
	}
	if p := check("set"); len(p) != 0 {
		t.Errorf("all can be read: %+v", p)
	}
	if p := check("none"); len(p) != 1 || !p[0].Blocking || !strings.Contains(p[0].What, "none") ||
		!strings.Contains(p[0].Hint, base) {
		t.Errorf("no directory: %+v", p)
	}
	if p := check(filepath.Join(base, "none")); len(p) != 1 || p[0].Hint != "" {
		t.Errorf("an absolute path does not start anywhere: %+v", p)
	}
	must(t, os.Mkdir(filepath.Join(base, "empty"), 0o755))
	if p := check("empty"); len(p) != 1 || p[0].Hint != "" {
		t.Errorf("an empty directory is where it should be: %+v", p)
	}
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	must(t, os.Chmod(filepath.Join(dir, "file-7"), 0))
	if p := check("set"); len(p) != 1 || !strings.Contains(p[0].What, "file-7") {
		t.Errorf("one cannot be read: %+v", p)
	}
}

// Every name that `skip:` takes is in the documentation.
func TestPreconditionsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/scripting.md")
	must(t, err)
	for _, name := range Skippable() {
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/scripting.md does not name %s", name)
		}
	}
}
