package httpload

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs many tests at a time: they wait for slow servers.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
