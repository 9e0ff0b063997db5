package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/nginx"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/workload"
)

const (
	rounds      = 5
	fileSize    = 1 << 30
	rangeSize   = 10 << 20
	smallSize   = 1 << 10
	connections = 100
)

// usage is the work of one client and its cost, from wait4.
type usage struct {
	cpu      float64 // seconds
	rss      int64
	requests int64
	bytes    int64
}

// client is one of the compared programs.
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
	bed, err := testbed.New(ctx, testbed.Options{Dir: filepath.Join(dir, "bed"), Plain: true})
	if err != nil {
		return err
	}
	defer end(bed.Close)
	host, err := bed.AddHost(ctx, "host")
	if err != nil {
		return err
	}
	server, err := system.Begin(ctx, nginx.System{}, system.Start, system.Deployment{Hosts: []testbed.Host{host},
		Client: host, Dir: filepath.Join(dir, "nginx"), Options: system.Options{"workers": "2"}})
	if err != nil {
		return err
	}
	defer end(server.Stop)
	big, err := object(ctx, server, workload.Content{Seed: 1, Index: 0, Size: fileSize})
	if err != nil {
		return err
	}
	small, err := object(ctx, server, workload.Content{Seed: 1, Index: 1, Size: smallSize})
	if err != nil {
		return err
	}
	fmt.Printf("server   %s\n", server.Identity()["version"])
	k6, wrk := find("k6", "version"), find("wrk", "-v")

	ranges := func(receive string, conns int, duration time.Duration) func(context.Context) (usage, error) {
		return plimsoll(httpload.Spec{
			Objects: []httpload.Object{big}, Concurrency: conns, Range: rangeSize, Order: "aligned",
			Receive: receive, Duration: duration, Seed: 1,
		})
	}
	objects := func(receive string) func(context.Context) (usage, error) {
		return plimsoll(httpload.Spec{
			Objects: []httpload.Object{small}, Concurrency: connections, Receive: receive, Duration: 2 * time.Second,
		})
	}
	fmt.Printf("\n## %d MiB ranges of a %d GiB file, %d connections: client CPU s/GB\n\n",
		rangeSize>>20, fileSize>>30, connections)
	perGB := func(u usage) float64 { return u.cpu / (float64(u.bytes) / 1e9) }
	err = compare(ctx, "CPU s/GB", perGB, "plimsoll drop / k6 ≤ 0.1, plimsoll verify / k6 ≤ 0.5",
		client{"plimsoll drop", ranges("drop", connections, 2*time.Second)},
		client{"plimsoll verify", ranges("verify", connections, 2*time.Second)},
		client{"k6", runK6(k6, big.URL, fileSize/rangeSize, dir)})
	if err != nil {
		return err
	}

	fmt.Printf("\n## %d B objects, %d connections: client CPU s per 10,000 requests\n\n", smallSize, connections)
	perRequest := func(u usage) float64 { return u.cpu / float64(u.requests) * 10_000 }
	err = compare(ctx, "CPU s/10k", perRequest, "plimsoll / k6 ≤ 0.33, plimsoll / wrk ≤ 2",
		client{"plimsoll verify", objects("verify")}, client{"plimsoll drop", objects("drop")},
		client{"k6", runK6(k6, small.URL, 0, dir)},
		client{"wrk", runWrk(wrk, small.URL)})
	if err != nil {
		return err
	}

	fmt.Printf("\n## Peak RSS, 1000 connections × %d MiB ranges\n\n", rangeSize>>20)
	for _, receive := range []string{"drop", "verify"} {
		u, err := ranges(receive, 1000, 4*time.Second)(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("plimsoll %-7s %4d MB  (at most %d MB)\n", receive, u.rss/1e6,
			map[string]int{"drop": 60, "verify": 150}[receive])
	}
	return nil
}

// end limits a cleanup to ten seconds; it also runs after an interrupt.
func end(cleanup func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = cleanup(ctx)
}

// object stores a content and returns where to fetch it.
func object(ctx context.Context, c system.Cluster, content workload.Content) (o httpload.Object, err error) {
	n := c.Nodes()[0]
	ref, err := system.Seed(ctx, n.(system.Store), fmt.Sprint(content.Index), content.Size, content.Reader())
	if err != nil {
		return o, err
	}
	target, err := n.(system.HTTPServer).Target(ref)
	if err != nil {
		return o, err
	}
	return httpload.Object{URL: target.URL.String(), Size: content.Size, Content: &content}, nil
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
func compare(
	ctx context.Context, unit string, value func(usage) float64, want string, clients ...client,
) error {
	clients = slices.DeleteFunc(clients, func(c client) bool { return c.run == nil })
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
	return nil
}

// plimsoll runs the load in a separate process of this binary.
func plimsoll(s httpload.Spec) func(context.Context) (usage, error) {
	return func(ctx context.Context) (u usage, err error) {
		self, err := os.Executable()
		if err != nil {
			return u, err
		}
		cmd := exec.CommandContext(ctx, self, loadCommand)
		cmd.Stderr = os.Stderr
		stdin, noInput := cmd.StdinPipe()
		stdout, noOutput := cmd.StdoutPipe()
		if err := errors.Join(noInput, noOutput, cmd.Start()); err != nil {
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
		u = used(cmd)
		u.rss = res.MaxRSS
		u.requests, u.bytes = res.Ops, res.Bytes
		return u, nil
	}
}

func used(cmd *exec.Cmd) usage {
	ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return usage{cpu: cpu.Seconds(), rss: ru.Maxrss << 10}
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
func runK6(k6, url string, ranges int, dir string) func(context.Context) (usage, error) {
	script := filepath.Join(dir, "load.js")
	return tool(k6, func(cmd *exec.Cmd) error {
		cmd.Args = append(cmd.Args, "run", "--quiet", "--no-usage-report", "--address", "", script)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		return os.WriteFile(script, fmt.Appendf(nil, k6Script, connections, ranges, rangeSize, url), 0o600)
	})
}

func runWrk(wrk, url string) func(context.Context) (usage, error) {
	return tool(wrk, func(cmd *exec.Cmd) error {
		cmd.Args = append(cmd.Args, "-t", "2", "-c", strconv.Itoa(connections), "-d", "2s", url)
		return nil
	})
}

// counted matches the counts that other programs print.
var counted = regexp.MustCompile(`(\d+) requests (?:of (\d+) bytes|in)`)

// tool runs another program, set up by prepare; nil: the program is missing.
func tool(path string, prepare func(*exec.Cmd) error) func(context.Context) (usage, error) {
	if path == "" {
		return nil
	}
	return func(ctx context.Context) (u usage, err error) {
		cmd := exec.CommandContext(ctx, path)
		cmd.Stderr = os.Stderr
		if err := prepare(cmd); err != nil {
			return u, err
		}
		out, err := cmd.Output()
		if err != nil {
			return u, err
		}
		m := counted.FindSubmatch(out)
		if m == nil {
			return u, fmt.Errorf("no count of requests in %q", out)
		}
		u = used(cmd)
		u.requests, _ = strconv.ParseInt(string(m[1]), 10, 64)
		u.bytes, _ = strconv.ParseInt(string(m[2]), 10, 64)
		return u, nil
	}
}
