package engine

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// The test binary serves as plimsoll's helpers of the testbed, too.
func TestMain(m *testing.M) {
	if handled, err := testbed.ServeNode(context.Background(), os.Args[1:]); handled {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
