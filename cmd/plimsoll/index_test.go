package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// An index is written again over an index, and never over anything else.
func TestTheIndexOverwritesOnlyAnIndex(t *testing.T) {
	root := t.TempDir()
	made, err := record.Create(filepath.Join(root, "a"), []byte("{}"), nil, nil)
	check(t, err)
	check(t, made.Close())
	page := filepath.Join(root, "index.html")
	report := func() (int, string, string) {
		var out, errs bytes.Buffer
		code := run([]string{"report", root}, strings.NewReader(""), &out, &errs)
		return code, out.String(), errs.String()
	}
	for range 2 { // anew, and over itself
		if code, out, errs := report(); code != 0 || !strings.Contains(out, "The index of 1 run: "+page) {
			t.Fatalf("status %d: %s%s", code, out, errs)
		}
	}
	const own = "<!doctype html><title>My own site</title>"
	check(t, os.WriteFile(page, []byte(own), 0o644))
	code, _, errs := report()
	is, err := os.ReadFile(page)
	check(t, err)
	if code != 2 || string(is) != own || !strings.Contains(errs, "is no index that plimsoll wrote") {
		t.Errorf("status %d: %s; the page is now %.60q", code, errs, is)
	}
}
