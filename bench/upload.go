package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/tahoe"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const (
	uploadPairs   = 9
	uploadObjects = 150 // of each side of a pair
	uploadSize    = 1000
	uploadLimit   = 0.01 // of operation time
)

const uploadFile = `
scenario: upload
systems: [{use: tahoe, mode: attach, with: {url: "http://%s"}}]
data: {objects: %d, size: %d}
upload: {concurrency: 1, poll: 10s, until: accepted}
allow: [write]
limits: {others: none, machine: none}
skip: [machine]
`

// putTimes are the times (seconds) of puts one after the other, from the
// beginning of each to that of the next, and between them.
type putTimes struct{ operations, cycles, gaps []float64 }

func (p *putTimes) add(start, end []time.Duration) {
	for i := range start {
		p.operations = append(p.operations, (end[i] - start[i]).Seconds())
		if i > 0 {
			p.cycles = append(p.cycles, (start[i] - start[i-1]).Seconds())
			p.gaps = append(p.gaps, (start[i] - end[i-1]).Seconds())
		}
	}
}

// benchUpload stores objects of 1 kB one after the other through `plimsoll run`
// and in a bare loop, on the same Tahoe-LAFS grid, in pairs of which either side
// comes first in turn.
func benchUpload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	if problems := (tahoe.System{}).Check(ctx, nil); len(problems) > 0 {
		fmt.Printf("left out: %s (%s)\n", problems[0].What, problems[0].Hint)
		return nil
	}
	dir, err := os.MkdirTemp("", "plimsoll-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "plimsoll")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/plimsoll").CombinedOutput(); err != nil {
		return fmt.Errorf("build plimsoll: %w: %s", err, out)
	}
	address, stop, err := startTahoe(ctx, dir, bin)
	if err != nil {
		return err
	}
	err = comparePuts(ctx, dir, bin, address)
	return errors.Join(err, stop())
}

// startTahoe starts a grid of 2-of-3 and gives its client's address.
func startTahoe(ctx context.Context, dir, bin string) (address string, stop func() error, err error) {
	bed, err := testbed.New(ctx, testbed.Options{Plain: true, Dir: filepath.Join(dir, "bed"), Self: []string{bin}})
	if err != nil {
		return "", nil, err
	}
	var cluster system.Cluster
	stop = func() error {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		var err error
		if cluster != nil {
			err = cluster.Stop(ending)
		}
		return errors.Join(err, bed.Close(ending))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	server, err := bed.AddHost(ctx, "server")
	if err != nil {
		return "", nil, err
	}
	client, err := bed.AddHost(ctx, "client")
	if err != nil {
		return "", nil, err
	}
	cluster, err = tahoe.System{}.Start(ctx, system.Deployment{Hosts: []testbed.Host{server}, Client: client, Dir: filepath.Join(dir, "grid"), Self: []string{bin}})
	if err != nil {
		return "", nil, err
	}
	return cluster.Nodes()[0].(system.Endpointer).Endpoints()[0], stop, nil
}

func comparePuts(ctx context.Context, dir, bin, address string) error {
	sides := []func(ctx context.Context, n int) (putTimes, error){
		func(ctx context.Context, n int) (putTimes, error) { return plimsollPuts(ctx, dir, bin, address, n) },
		func(ctx context.Context, n int) (putTimes, error) { return barePuts(ctx, address, n) },
	}
	for _, side := range sides { // warm
		if _, err := side(ctx, 20); err != nil {
			return err
		}
	}
	var operation, cycle, between []float64 // of each pair
	fmt.Printf("%4s  %22s  %22s  %9s\n", "pair", "plimsoll: put, cycle", "bare: put, cycle", "cycles")
	for pair := range uploadPairs {
		var of [2]putTimes
		for i := range sides {
			at := (i + pair) % 2
			var err error
			if of[at], err = sides[at](ctx, uploadObjects); err != nil {
				return err
			}
		}
		median := func(x []float64) float64 { return stats.Median(slices.Clone(x)) }
		p, b := of[0], of[1]
		operation = append(operation, median(p.operations)/median(b.operations))
		cycle = append(cycle, median(p.cycles)/median(b.cycles))
		between = append(between, (median(p.gaps)-median(b.gaps))/median(p.operations))
		fmt.Printf("%4d  %8.3f ms %8.3f ms  %8.3f ms %8.3f ms  %9.4f\n", pair+1,
			1e3*median(p.operations), 1e3*median(p.cycles), 1e3*median(b.operations), 1e3*median(b.cycles), cycle[pair])
	}
	fmt.Println()
	for _, row := range []struct {
		what   string
		ratios []float64
		less   float64
	}{
		{"put, plimsoll / bare", operation, 1},
		{"from put to put, plimsoll / bare", cycle, 1},
		{"more between puts, of a put", between, 0},
	} {
		fmt.Printf("%-36s %+7.2f %%   (pairs: %+.2f … %+.2f %%)\n", row.what,
			100*(stats.Median(slices.Clone(row.ratios))-row.less), 100*(slices.Min(row.ratios)-row.less), 100*(slices.Max(row.ratios)-row.less))
	}
	fmt.Printf("medians of %d pairs of %d puts of %d B each; the limit of the last row is %.0f %%.\n", uploadPairs, uploadObjects, uploadSize, 100*uploadLimit)
	fmt.Println("The first two rows cannot tell less than what the pairs of a busy machine differ by; the last one can.")
	if over := stats.Median(slices.Clone(between)); over > uploadLimit {
		return fmt.Errorf("an upload spends %.2f %% of a put's time between puts, above %.0f %%", 100*over, 100*uploadLimit)
	}
	return nil
}

// barePuts is what a client does that does nothing else.
func barePuts(ctx context.Context, address string, n int) (out putTimes, err error) {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	bodies := make([]byte, n*uploadSize)
	if _, err := rand.Read(bodies); err != nil {
		return out, err
	}
	var start, end []time.Duration
	epoch := time.Now()
	for i := range n {
		start = append(start, time.Since(epoch))
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+address+"/uri", bytes.NewReader(bodies[i*uploadSize:][:uploadSize]))
		if err != nil {
			return out, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return out, err
		}
		ref, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		end = append(end, time.Since(epoch))
		if err != nil || !strings.HasPrefix(string(ref), "URI:CHK:") {
			return out, fmt.Errorf("put %d: status %d: %.200s: %v", i, resp.StatusCode, ref, err)
		}
	}
	out.add(start, end)
	return out, nil
}

// plimsollPuts runs a load test and reads its record.
func plimsollPuts(ctx context.Context, dir, bin, address string, n int) (out putTimes, err error) {
	file, run := filepath.Join(dir, "upload.yaml"), filepath.Join(dir, "run")
	if err := os.WriteFile(file, fmt.Appendf(nil, uploadFile, address, n, uploadSize), 0o644); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(run)) }()
	cmd := exec.CommandContext(ctx, bin, "run", file, "--out", run)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if said, err := cmd.CombinedOutput(); err != nil {
		return out, fmt.Errorf("plimsoll run: %w: %s", err, said)
	}
	r, err := record.Open(run)
	if err != nil {
		return out, err
	}
	defer r.Close()
	trials, err := r.Trials()
	if err != nil {
		return out, err
	}
	if len(trials) != 1 {
		return out, fmt.Errorf("the run has %d trials", len(trials))
	}
	var start, end []time.Duration
	for op, err := range r.Ops(trials[0].ID) {
		if err != nil {
			return out, err
		}
		if op.Kind == record.OpPut && op.Outcome == record.OK {
			start, end = append(start, time.Duration(op.Start)), append(end, time.Duration(op.LastByte))
		}
	}
	if len(start) != n {
		return out, fmt.Errorf("the run has %d of %d puts", len(start), n)
	}
	out.add(start, end)
	return out, nil
}
