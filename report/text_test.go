package report

import (
	"os"
	"testing"
)

func TestX(t *testing.T) {
	r := built(t, synthetic{})
	t.Log("\n" + text(t, r, 100))
	f, _ := os.Create("/tmp/rep.html")
	must(t, r.WriteHTML(f))
	f.Close()
	f, _ = os.Create("/tmp/summary.json")
	must(t, r.WriteJSON(f))
	f.Close()
}
