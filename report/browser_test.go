package report

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// seen is what web/test/page.mjs reports of a page.
type seen struct {
	Noise, Requests, Nameless       []string
	Title                           string
	Figures, Plots, Pictures, Marks int
	Chosen, Themed                  bool
	Widths                          map[string]int
	Downloads                       map[string]struct {
		Name, Begins string
		Size         int
	}
}

// look opens a page in headless Chromium; it skips, with the reason, where that
// is missing and PLIMSOLL_REQUIRE does not ask for it.
func look(t *testing.T, url string) seen {
	t.Helper()
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
	node, err := exec.LookPath("node")
	if err != nil {
		missing("node is not installed: the page is not looked at")
	}
	if _, err := os.Stat("../web/node_modules/playwright-core"); err != nil {
		missing("web/node_modules is missing (cd web && npm ci): the page is not looked at")
	}
	args := []string{"test/page.mjs", chromium, url}
	if dir := os.Getenv("PLIMSOLL_SHOTS"); dir != "" {
		args = append(args, dir)
	}
	cmd := exec.Command(node, args...)
	cmd.Dir = "../web"
	cmd.WaitDelay = 5 * time.Second
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("page.mjs: %v\n%s", err, stderr.String())
	}
	var s seen
	must(t, json.Unmarshal(out, &s))
	return s
}

func TestPageInChromium(t *testing.T) {
	r := sharedReport(t)
	path := filepath.Join(t.TempDir(), "report.html")
	must(t, os.WriteFile(path, page(t, r), 0o644))
	s := look(t, "file://"+path)
	for _, n := range s.Noise {
		t.Error(n)
	}
	if len(s.Requests) != 1 || s.Requests[0] != "file://"+path {
		t.Errorf("the page asked for %q", s.Requests)
	}
	if s.Figures != len(r.Figures)+1 || s.Pictures != s.Plots || s.Marks < 500 {
		t.Errorf("%d figures, %d plots, %d pictures with %d marks", s.Figures, s.Plots, s.Pictures, s.Marks)
	}
	if !s.Chosen || !s.Themed {
		t.Errorf("choosing cells changed the picture: %v; the theme changed: %v", s.Chosen, s.Themed)
	}
	for width, want := range map[string]int{"1280": 1280, "400": 400} {
		if s.Widths[width] != want {
			t.Errorf("at %s px the page is %d px wide", width, s.Widths[width])
		}
	}
	for _, e := range s.Nameless {
		t.Errorf("no name for a screen reader: %s", e)
	}
	for kind, begins := range map[string]string{"svg": "<svg", "png": "\x89PNG", "csv": "rate,con"} {
		d := s.Downloads[kind]
		if d.Size < 500 || !strings.HasPrefix(d.Begins, begins[:min(len(begins), 4)]) && kind != "png" || !strings.HasSuffix(d.Name, "."+kind) {
			t.Errorf("download of %s: %+v", kind, d)
		}
	}
}

func TestLivePageInChromium(t *testing.T) {
	srv := httptest.NewServer(Live(shared(t)))
	defer srv.Close()
	s := look(t, srv.URL+"/")
	for _, n := range s.Noise {
		t.Error(n)
	}
	for _, r := range s.Requests {
		if !strings.HasPrefix(r, srv.URL) {
			t.Errorf("the live page asked for %s", r)
		}
	}
	if s.Pictures != s.Plots || s.Pictures == 0 {
		t.Errorf("%d plots, %d pictures", s.Plots, s.Pictures)
	}
}
