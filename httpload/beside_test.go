package httpload_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/nginx"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/workload"
)

// TestMain makes the test binary be the load process and the testbed's helpers as well. It runs
// many tests at a time: they wait for slow servers.
func TestMain(m *testing.M) {
	handled, err := testbed.ServeNode(context.Background(), os.Args[1:])
	switch {
	case handled:
	case slices.Equal(os.Args[1:], []string{"load"}):
		err = httpload.Serve(context.Background(), os.Stdin, os.Stdout)
	default:
		err = flag.Set("test.parallel", "8")
		m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	rounds      = 5
	rangeSize   = 10 << 20
	connections = 100
)

// usage is the work of one client and its cost, from wait4.
type usage struct {
	cpu      float64 // seconds
	rss      int64
	requests int64
	bytes    int64
}

// client is one of the compared programs; run is nil where it is missing.
type client struct {
	name string
	run  func(*testing.B) usage
}

// BenchmarkBesideOthers compares the cost of the load generator with that of k6 and wrk, against
// nginx on loopback, in about 2 minutes.
func BenchmarkBesideOthers(b *testing.B) {
	bed, err := testbed.New(b.Context(), testbed.Options{Dir: filepath.Join(b.TempDir(), "bed"), Plain: true})
	must(b, err)
	b.Cleanup(func() { _ = bed.Close(context.Background()) })
	host, err := bed.AddHost(b.Context(), "host")
	must(b, err)
	server, err := system.Begin(b.Context(), nginx.System{}, system.Start, system.Deployment{Hosts: []testbed.Host{host},
		Client: host, Dir: filepath.Join(b.TempDir(), "nginx"), Options: system.Options{"workers": "2"}})
	must(b, err)
	b.Cleanup(func() { _ = server.Stop(context.Background()) })
	big := object(b, server, workload.Content{Seed: 1, Index: 0, Size: 1 << 30})
	small := object(b, server, workload.Content{Seed: 1, Index: 1, Size: 1 << 10})
	fmt.Printf("\nserver   %s\n", server.Identity()["version"])
	k6, wrk := find("k6", "version"), find("wrk", "-v")

	ranges := func(receive string, conns int, duration time.Duration) func(*testing.B) usage {
		return plimsoll(httpload.Spec{Objects: []httpload.Object{big}, Concurrency: conns, Range: rangeSize,
			Order: "aligned", Receive: receive, Duration: duration, Seed: 1})
	}
	objects := func(receive string) func(*testing.B) usage {
		return plimsoll(httpload.Spec{Objects: []httpload.Object{small}, Concurrency: connections, Receive: receive,
			Duration: 2 * time.Second})
	}
	fmt.Printf("\n## 10 MiB ranges of a 1 GiB file, %d connections: client CPU s/GB\n\n", connections)
	compare(b, "CPU s/GB", func(u usage) float64 { return u.cpu / (float64(u.bytes) / 1e9) },
		"plimsoll drop / k6 ≤ 0.1, plimsoll verify / k6 ≤ 0.5",
		client{"plimsoll drop", ranges("drop", connections, 2*time.Second)},
		client{"plimsoll verify", ranges("verify", connections, 2*time.Second)},
		client{"k6", runK6(k6, big.URL, int(big.Size/rangeSize))})
	fmt.Printf("\n## 1 KiB objects, %d connections: client CPU s per 10,000 requests\n\n", connections)
	compare(b, "CPU s/10k", func(u usage) float64 { return u.cpu / float64(u.requests) * 10_000 },
		"plimsoll / k6 ≤ 0.33, plimsoll / wrk ≤ 2",
		client{"plimsoll verify", objects("verify")}, client{"plimsoll drop", objects("drop")},
		client{"k6", runK6(k6, small.URL, 0)}, client{"wrk", runWrk(wrk, small.URL)})
	fmt.Printf("\n## Peak RSS, 1000 connections × 10 MiB ranges\n\n")
	for receive, most := range map[string]int{"drop": 60, "verify": 150} {
		fmt.Printf("plimsoll %-7s %4d MB  (at most %d MB)\n", receive,
			ranges(receive, 1000, 4*time.Second)(b).rss/1e6, most)
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// object stores a content and returns where to fetch it.
func object(b *testing.B, c system.Cluster, content workload.Content) httpload.Object {
	n := c.Nodes()[0]
	ref, err := system.Seed(b.Context(), n.(system.Store), fmt.Sprint(content.Index), content.Size, content.Reader())
	must(b, err)
	target, err := n.(system.HTTPServer).Target(ref)
	must(b, err)
	return httpload.Object{URL: target.URL.String(), Size: content.Size, Content: &content}
}

// find prints the version of a program and returns its path; empty: not found.
func find(name, versionFlag string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		fmt.Printf("%-8s not found: its rows are missing\n", name)
		return ""
	}
	out, _ := exec.Command(path, versionFlag).CombinedOutput() // some exit with 1
	line, _, _ := strings.Cut(string(out), "\n")
	fmt.Printf("%-8s %s\n", name, strings.TrimSpace(line))
	return path
}

// compare runs all available clients in every round, in alternating order, so that drift of the
// machine affects all equally. It prints medians, and medians of the ratios to each of the other
// programs within a round.
func compare(b *testing.B, unit string, value func(usage) float64, want string, clients ...client) {
	clients = slices.DeleteFunc(clients, func(c client) bool { return c.run == nil })
	values, rss := make([][]float64, len(clients)), make([]int64, len(clients))
	for round := range rounds {
		for i := range clients {
			if round%2 == 1 {
				i = len(clients) - 1 - i
			}
			u := clients[i].run(b)
			values[i], rss[i] = append(values[i], value(u)), max(rss[i], u.rss)
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "client\t%s\tRSS MB\t", unit)
	var others []int
	for i, c := range clients {
		if !strings.HasPrefix(c.name, "plimsoll") {
			others = append(others, i)
			fmt.Fprintf(w, "/ %s\t", c.name)
		}
	}
	fmt.Fprintln(w)
	for i, c := range clients {
		fmt.Fprintf(w, "%s\t%.4f\t%d\t", c.name, stats.Median(values[i]), rss[i]/1e6)
		for _, other := range others {
			ratios := make([]float64, rounds)
			for r := range ratios {
				ratios[r] = values[i][r] / values[other][r]
			}
			fmt.Fprintf(w, "%.3f\t", stats.Median(ratios))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Printf("\nmedians of %d rounds; wanted: %s\n", rounds, want)
}

// plimsoll runs the load in a separate process of this binary.
func plimsoll(s httpload.Spec) func(*testing.B) usage {
	return func(b *testing.B) usage {
		self, err := os.Executable()
		must(b, err)
		cmd := exec.CommandContext(b.Context(), self, "load")
		cmd.Stderr = os.Stderr
		stdin, noInput := cmd.StdinPipe()
		stdout, noOutput := cmd.StdoutPipe()
		must(b, errors.Join(noInput, noOutput, cmd.Start()))
		sum := record.NewSummary()
		var all []record.Op
		generator := httpload.Generator{In: stdin, Out: stdout, Ended: func() error { return nil }}
		_, err = httpload.Drive(b.Context(), []httpload.Spec{s}, []httpload.Generator{generator},
			func(block []byte) (err error) {
				all, err = record.DecodeBlock(block, all[:0])
				return errors.Join(err, sum.Ops(all))
			}, func(httpload.Progress) {})
		proc, gone := procfs.NewProc(cmd.Process.Pid)
		must(b, gone)
		status, gone := proc.NewStatus()
		must(b, errors.Join(err, gone, stdin.Close(), cmd.Wait()))
		n := sum.Counts()
		for o, k := range n.OutcomeMap() {
			if o != "ok" && o != "in-flight" && k > 0 {
				b.Fatalf("%d operations ended %s: %v", k, o, n.Classes)
			}
		}
		return usage{cpu: used(cmd).cpu, rss: int64(status.VmHWM), requests: n.Ops, bytes: n.Bytes}
	}
}

func used(cmd *exec.Cmd) usage {
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return usage{cpu: cpu.Seconds(), rss: cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10}
}

// k6Script does the same as the study's scripts, with the bodies discarded.
const k6Script = `import http from 'k6/http';
export const options = { vus: %d, duration: '3s', discardResponseBodies: true };
const n = %d, size = %d;
export default function () {
  const off = Math.floor(Math.random() * n) * size;
  http.get('%s', n > 0 ? { headers: { Range: 'bytes=' + off + '-' + (off + size - 1) } } : {});
}
export function handleSummary(data) {
  const count = (name) => data.metrics[name].values.count;
  return { stdout: count('http_reqs') + ' requests of ' + count('data_received') + ' bytes' };
}
`

// runK6 fetches random ranges out of that many; 0: whole objects.
func runK6(k6, url string, ranges int) func(*testing.B) usage {
	return tool(k6, func(b *testing.B, cmd *exec.Cmd) {
		dir := b.TempDir()
		script := filepath.Join(dir, "load.js")
		must(b, os.WriteFile(script, fmt.Appendf(nil, k6Script, connections, ranges, rangeSize, url), 0o600))
		cmd.Args = append(cmd.Args, "run", "--quiet", "--no-usage-report", "--address", "", script)
		cmd.Env = append(os.Environ(), "HOME="+dir)
	})
}

func runWrk(wrk, url string) func(*testing.B) usage {
	return tool(wrk, func(_ *testing.B, cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, "-t", "2", "-c", strconv.Itoa(connections), "-d", "2s", url)
	})
}

// counted matches the counts that other programs print.
var counted = regexp.MustCompile(`(\d+) requests (?:of (\d+) bytes|in)`)

// tool runs another program, set up by prepare; nil: the program is missing.
func tool(path string, prepare func(*testing.B, *exec.Cmd)) func(*testing.B) usage {
	if path == "" {
		return nil
	}
	return func(b *testing.B) usage {
		cmd := exec.CommandContext(b.Context(), path)
		cmd.Stderr = os.Stderr
		prepare(b, cmd)
		out, err := cmd.Output()
		must(b, err)
		m := counted.FindSubmatch(out)
		if m == nil {
			b.Fatalf("no count of requests in %q", out)
		}
		u := used(cmd)
		u.requests, _ = strconv.ParseInt(string(m[1]), 10, 64)
		u.bytes, _ = strconv.ParseInt(string(m[2]), 10, 64)
		return u
	}
}
