//go:build !linux

package httpload

import (
	"context"
	"errors"
	"runtime"
)

// Elsewhere than on Linux plain HTTP goes through net/http too.
func runRaw(ctx context.Context, t *trial, res *Result) error {
	if t.spec.Receive == receiveDrop {
		return errors.New("httpload: the drop path needs Linux; use receive: verify")
	}
	return runNetHTTP(ctx, t, res)
}

func cpuSeconds() float64 { return 0 }
func peakRSS() int64      { return 0 }
func usableCPUs() int     { return runtime.NumCPU() }
