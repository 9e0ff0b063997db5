package report

import (
	"os"
	"testing"
)

func TestSyncText(t *testing.T) {
	r := syncTruth{}.build(t)
	t.Log(text(t, r, 120))
	if dir := os.Getenv("PLIMSOLL_PAGES"); dir != "" {
		must(t, os.WriteFile(dir+"/sync.html", page(t, r), 0o644))
	}
}
