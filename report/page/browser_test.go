package page_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
)

// A browser draws every figure of a page, unscrolled, too, without a message or a
// request, and nothing is wider than a phone.
func TestPageInChromium(t *testing.T) {
	missing := func(what string) {
		if slices.Contains(strings.Split(os.Getenv("PLIMSOLL_REQUIRE"), ","), "chromium") {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		missing("chromium is not installed: the page is not looked at")
	}
	if _, err := os.Stat("../../web/node_modules/playwright-core"); err != nil {
		missing("web/node_modules is missing (cd web && npm ci): the page is not looked at")
	}
	for _, name := range []string{"retrieve-gates", "upload-leak", "disseminate"} { // all kinds of figures
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inChromium(t, chromium, result(t, name))
		})
	}
}

func inChromium(t *testing.T, chromium string, r *analysis.Result) {
	path := filepath.Join(t.TempDir(), "report.html")
	must(t, os.WriteFile(path, []byte(write(t, r)), 0o644))
	cmd := exec.Command("node", "test/page.mjs", chromium, "file://"+path)
	cmd.Dir, cmd.WaitDelay = "../../web", 5*time.Second
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("page.mjs: %v\n%s", err, stderr.String())
	}
	var seen struct {
		Noise, Requests, Nameless, Unfocused []string
		Plots, Pictures, Marks               int
		Whole, Themed                        bool
		Widths, Fold                         map[string]int
	}
	must(t, json.Unmarshal(out, &seen))
	for _, bad := range [][]string{seen.Noise, seen.Nameless, seen.Unfocused} {
		for _, s := range bad {
			t.Error(s)
		}
	}
	if len(seen.Requests) > 2 || slices.ContainsFunc(seen.Requests,
		func(s string) bool { return !strings.HasPrefix(s, "file:") }) {
		t.Errorf("requests: %v", seen.Requests)
	}
	if !seen.Whole || seen.Plots == 0 || seen.Pictures != seen.Plots || seen.Marks < seen.Plots {
		t.Errorf("of %d plots %d are drawn, with %d marks; before scrolling all: %v", seen.Plots, seen.Pictures,
			seen.Marks, seen.Whole)
	}
	if seen.Widths["360"] > 360 || seen.Fold[".verdict"] > 800 || seen.Fold[".verdict"] < 0 || !seen.Themed {
		t.Errorf("widths %v, bottoms %v, themed %v", seen.Widths, seen.Fold, seen.Themed)
	}
}
