package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/nginx"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/workload"
)

const (
	// loadCommand makes this binary the load process of Plimsoll.
	loadCommand = "load"

	rounds      = 5
	fileSize    = 1 << 30
	rangeSize   = 10 << 20
	smallSize   = 1 << 10
	connections = 100
)

func serveLoad() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return httpload.Serve(ctx, os.Stdin, os.Stdout)
}

// usage is what one client did and what it cost, from wait4.
type usage struct {
	cpu      float64 // seconds
	rss      int64
	requests int64
	bytes    int64
}

// client is one of the programs that are compared.
type client struct {
	name string
	run  func(context.Context) (usage, error)
}

func benchHTTPLoad(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "plimsoll-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	srv, err := startNginx(ctx, dir)
	if err != nil {
		return err
	}
	defer srv.stop()
	k6 := os.Getenv("PLIMSOLL_K6")
	if k6 == "" {
		k6, _ = exec.LookPath("k6")
	}
	wrk, _ := exec.LookPath("wrk")
	fmt.Printf("server   %s\n", srv.cluster.Identity()["version"])
	for _, tool := range []struct{ name, path, flag string }{{"k6", k6, "version"}, {"wrk", wrk, "-v"}} {
		if tool.path == "" {
			fmt.Printf("%-8s not found: its rows are missing (k6 is found by PATH or PLIMSOLL_K6)\n", tool.name)
			continue
		}
		fmt.Printf("%-8s %s\n", tool.name, version(tool.path, tool.flag))
	}
	fmt.Println()

	ranges := func(receive string, conns int, duration time.Duration) httpload.Spec {
		return httpload.Spec{
			Objects: []httpload.Object{srv.big}, Concurrency: conns, Range: rangeSize, Order: "aligned",
			Receive: receive, Duration: duration, Seed: 1,
		}
	}
	small := httpload.Spec{
		Objects:     []httpload.Object{srv.small},
		Concurrency: connections, Duration: 2 * time.Second,
	}
	dropSmall := small
	dropSmall.Receive = "drop"

	fmt.Printf("## %d MiB ranges of a %d GiB file, %d connections: client CPU s/GB\n\n",
		rangeSize>>20, fileSize>>30, connections)
	clients := []client{
		{"plimsoll drop", plimsoll(ranges("drop", connections, 2*time.Second))},
		{"plimsoll verify", plimsoll(ranges("verify", connections, 2*time.Second))},
	}
	if k6 != "" {
		clients = append(clients, client{"k6", runK6(k6, srv.big.URL, true, 3*time.Second, dir)})
	}
	perGB := func(u usage) float64 { return u.cpu / (float64(u.bytes) / 1e9) }
	want := "plimsoll drop / k6 ≤ 0.1, plimsoll verify / k6 ≤ 0.5"
	if err := compare(ctx, clients, "k6", "CPU s/GB", perGB, want); err != nil {
		return err
	}

	fmt.Printf("\n## %d B objects, %d connections: client CPU s per 10,000 requests\n\n", smallSize, connections)
	clients = []client{{"plimsoll verify", plimsoll(small)}, {"plimsoll drop", plimsoll(dropSmall)}}
	if k6 != "" {
		clients = append(clients, client{"k6", runK6(k6, srv.small.URL, false, 3*time.Second, dir)})
	}
	if wrk != "" {
		clients = append(clients, client{"wrk", runWrk(wrk, srv.small.URL, 2*time.Second)})
	}
	perRequest := func(u usage) float64 { return u.cpu / float64(u.requests) * 10_000 }
	want = "plimsoll / k6 ≤ 0.33, plimsoll / wrk ≤ 2"
	if err := compare(ctx, clients, "k6,wrk", "CPU s/10k", perRequest, want); err != nil {
		return err
	}

	fmt.Printf("\n## Peak RSS, 1000 connections × %d MiB ranges\n\n", rangeSize>>20)
	for _, receive := range []string{"drop", "verify"} {
		u, err := plimsoll(ranges(receive, 1000, 4*time.Second))(ctx)
		if err != nil {
			return err
		}
		limit := 60
		if receive == "verify" {
			limit = 150
		}
		fmt.Printf("plimsoll %-7s %4d MB  (at most %d MB)\n", receive, u.rss/1e6, limit)
	}
	return nil
}

// compare runs all clients in every round, in alternating order, so that drift
// of the machine hits all alike, and prints medians and medians of the ratios
// to each of the others within a round.
func compare(
	ctx context.Context, clients []client, others, unit string, value func(usage) float64, want string,
) error {
	values := make([][]float64, len(clients))
	rss := make([]int64, len(clients))
	for round := range rounds {
		for i := range clients {
			if round%2 == 1 {
				i = len(clients) - 1 - i
			}
			u, err := clients[i].run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", clients[i].name, err)
			}
			values[i] = append(values[i], value(u))
			rss[i] = max(rss[i], u.rss)
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "client\t%s\tRSS MB\t", unit)
	var bases []int
	for i, c := range clients {
		if contains(others, c.name) {
			bases = append(bases, i)
			fmt.Fprintf(w, "/ %s\t", c.name)
		}
	}
	fmt.Fprintln(w)
	for i, c := range clients {
		fmt.Fprintf(w, "%s\t%.4f\t%d\t", c.name, median(values[i]), rss[i]/1e6)
		for _, b := range bases {
			ratios := make([]float64, rounds)
			for r := range ratios {
				ratios[r] = values[i][r] / values[b][r]
			}
			fmt.Fprintf(w, "%.3f\t", median(ratios))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Printf("\nmedians of %d rounds; wanted: %s\n", rounds, want)
	return nil
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	return xs[len(xs)/2]
}

// plimsoll runs the load in a process of its own, this binary again.
func plimsoll(s httpload.Spec) func(context.Context) (usage, error) {
	return func(ctx context.Context) (u usage, err error) {
		self, err := os.Executable()
		if err != nil {
			return u, err
		}
		cmd := exec.CommandContext(ctx, self, loadCommand)
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return u, err
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			return u, err
		}
		if err := cmd.Start(); err != nil {
			return u, err
		}
		res, err := httpload.Drive(ctx, []httpload.Spec{s}, []httpload.Generator{{In: stdin, Out: stdout}}, nil, nil)
		if err = errors.Join(err, cmd.Wait()); err != nil {
			return u, err
		}
		for o, n := range res.Outcomes {
			if o != "ok" && o != "in-flight" && n > 0 {
				return u, fmt.Errorf("%d operations ended %s: %v", n, o, res.Classes)
			}
		}
		u = waited(cmd)
		u.rss = res.MaxRSS
		u.requests, u.bytes = res.Ops, res.Bytes
		return u, nil
	}
}

func waited(cmd *exec.Cmd) usage {
	ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return usage{cpu: cpu.Seconds(), rss: ru.Maxrss << 10}
}

// k6Script does what the study's scripts do, with the bodies discarded.
const k6Script = `import http from 'k6/http';
export const options = { vus: %d, duration: '%s', discardResponseBodies: true };
const n = %d, size = %d;
export default function () {
  const off = Math.floor(Math.random() * n) * size;
  http.get('%s', n > 0 ? { headers: { Range: 'bytes=' + off + '-' + (off + size - 1) } } : {});
}
export function handleSummary(data) {
  const count = (name) => data.metrics[name].values.count;
  return { stdout: JSON.stringify({ requests: count('http_reqs'), bytes: count('data_received') }) };
}
`

func runK6(k6, url string, ranged bool, d time.Duration, dir string) func(context.Context) (usage, error) {
	return func(ctx context.Context) (usage, error) {
		pieces := 0
		if ranged {
			pieces = fileSize / rangeSize
		}
		script := filepath.Join(dir, "load.js")
		text := fmt.Appendf(nil, k6Script, connections, d, pieces, rangeSize, url)
		if err := os.WriteFile(script, text, 0o600); err != nil {
			return usage{}, err
		}
		cmd := exec.CommandContext(ctx, k6, "run", "--quiet", "--no-usage-report", "--address", "", script)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		out, err := cmd.Output()
		if err != nil {
			return usage{}, fmt.Errorf("%w: %s", err, stderrOf(err))
		}
		u := waited(cmd)
		var sum struct{ Requests, Bytes float64 }
		if i := bytes.IndexByte(out, '{'); i < 0 {
			return u, fmt.Errorf("no summary in %q", out)
		} else if err := json.NewDecoder(bytes.NewReader(out[i:])).Decode(&sum); err != nil {
			return u, err
		}
		u.requests, u.bytes = int64(sum.Requests), int64(sum.Bytes)
		return u, nil
	}
}

func runWrk(wrk, url string, d time.Duration) func(context.Context) (usage, error) {
	requests := regexp.MustCompile(`(\d+) requests in`)
	return func(ctx context.Context) (usage, error) {
		cmd := exec.CommandContext(ctx, wrk, "-t", "2", "-c", strconv.Itoa(connections),
			"-d", fmt.Sprintf("%ds", int(d.Seconds())), url)
		out, err := cmd.Output()
		if err != nil {
			return usage{}, fmt.Errorf("%w: %s", err, stderrOf(err))
		}
		u := waited(cmd)
		m := requests.FindSubmatch(out)
		if m == nil {
			return u, fmt.Errorf("no count of requests in %q", out)
		}
		u.requests, err = strconv.ParseInt(string(m[1]), 10, 64)
		return u, err
	}
}

func stderrOf(err error) string {
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		return strings.TrimSpace(string(e.Stderr))
	}
	return ""
}

// version is the first line a program says about itself; some exit with 1.
func version(program string, flag string) string {
	out, _ := exec.Command(program, flag).CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// server is nginx as Plimsoll starts it, with two files.
type server struct {
	bed        *testbed.Testbed
	cluster    system.Cluster
	big, small httpload.Object
}

func startNginx(ctx context.Context, dir string) (s *server, err error) {
	s = &server{}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.bed, err = testbed.New(ctx, testbed.Options{Dir: filepath.Join(dir, "bed"), Plain: true}); err != nil {
		return nil, err
	}
	var hosts [2]testbed.Host
	for i, name := range []string{"server", "client"} {
		if hosts[i], err = s.bed.AddHost(ctx, name); err != nil {
			return nil, err
		}
	}
	s.cluster, err = system.Begin(ctx, nginx.System{}, system.Start, system.Deployment{
		Hosts: hosts[:1], Client: hosts[1], Dir: filepath.Join(dir, "nginx"), Options: system.Options{"workers": "2"}})
	if err != nil {
		return nil, err
	}
	if s.big, err = s.object(ctx, "big", workload.Content{Seed: 1, Index: 0, Size: fileSize}); err != nil {
		return nil, err
	}
	s.small, err = s.object(ctx, "small", workload.Content{Seed: 1, Index: 1, Size: smallSize})
	return s, err
}

// object stores a content and says where it is fetched from.
func (s *server) object(ctx context.Context, name string, c workload.Content) (o httpload.Object, err error) {
	n := s.cluster.Nodes()[0]
	ref, err := system.Seed(ctx, n.(system.Store), name, c.Size, c.Reader())
	if err != nil {
		return o, err
	}
	target, err := n.(system.HTTPServer).Target(ref)
	if err != nil {
		return o, err
	}
	return httpload.Object{URL: target.URL.String(), Size: c.Size, Content: &c}, nil
}

func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if s.cluster != nil {
		_ = s.cluster.Stop(ctx)
	}
	if s.bed != nil {
		_ = s.bed.Close(ctx)
	}
}
