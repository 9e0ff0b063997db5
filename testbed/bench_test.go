package testbed

import (
	"testing"
	"time"
)

// What one observation costs, on a machine with its usual processes.
func BenchmarkPoll(b *testing.B) {
	tb, err := New(b.Context(), Options{Dir: b.TempDir(), Plain: true})
	if err != nil {
		b.Fatal(err)
	}
	defer tb.Close(b.Context())
	for b.Loop() {
		tb.Poll(time.Now())
	}
}
