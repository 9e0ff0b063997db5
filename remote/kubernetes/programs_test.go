package kubernetes

import (
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system/install"
	"github.com/plimsoll-project/plimsoll/system/siasim"
)

// bundle makes an image with plimsoll and further files of this machine.
func bundle(t *testing.T, tag string, files ...string) (name string) {
	t.Helper()
	name = "localhost/plimsoll:" + tag
	script(t, append([]string{"bundle", name, os.Getenv("PLIMSOLL_BINARY") + "=/usr/local/bin/plimsoll"}, files...)...)
	return name
}

// environment returns the directory of a program's commands, installed on this machine by `plimsoll
// systems install`, and everything that its Python needs.
func environment(t *testing.T, program string) (bin string, files []string) {
	t.Helper()
	bin, ok := install.Find(program)
	if !ok {
		t.Skip("not installed: plimsoll systems install " + program)
	}
	if strings.HasPrefix(bin, "/tmp/") {
		t.Skip("pods have a /tmp of their own, and " + bin + " cannot be elsewhere")
	}
	python := filepath.Join(bin, "python3")
	stdlib, err := exec.Command(python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").Output()
	must(t, err)
	files = []string{filepath.Dir(bin)}
	entries, err := os.ReadDir(strings.TrimSpace(string(stdlib)))
	must(t, err)
	for _, e := range entries {
		if e.Name() != "site-packages" && e.Name() != "test" { // packages installed separately, and tests
			files = append(files, filepath.Join(strings.TrimSpace(string(stdlib)), e.Name()))
		}
	}
	for {
		target, err := os.Readlink(python)
		if err != nil {
			return bin, files
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(python), target)
		}
		if python = target; filepath.Dir(python) != bin {
			files = append(files, python)
		}
	}
}

// inPods runs an experiment with an image, and checks the number of trials and that all their
// operations succeed.
func inPods(t *testing.T, image, text string, trials int) {
	t.Helper()
	c := real(t, "")
	dir := filepath.Join(t.TempDir(), "run")
	call(t, "run", experimentFile(t, text), "--out", dir, "--on", "kubernetes", "--image", image, "--keep-going",
		"--pack").ends(15 * time.Minute)
	all, _ := recorded(t, dir)
	for _, trial := range all {
		outcomes := slices.Collect(maps.Keys(trial.Outcomes))
		if trial.State != record.Done || !slices.Equal(outcomes, []string{record.OK.String()}) {
			t.Errorf("trial %+v", trial)
		}
	}
	if len(all) != trials {
		t.Errorf("%d trials, want %d", len(all), trials)
	}
	nothingLeft(t, c)
}

const emulated = `
link: {rate: 20Mbit, delay: 5ms}
repetitions: 1
warmup: 0
limits: {others: none, machine: none, deadline: 5m, start: 5m}
`

// Programs in an image are measured in pods as on this machine.
func TestClusterPrograms(t *testing.T) {
	notShort(t)
	real(t, "")
	const overhead = "scenario: overhead\noverhead: {operation: [put, get], count: 3}\ndata: {objects: 2, size: 10kB}"
	const swarm = "scenario: disseminate\ndisseminate: {nodes: 3, seeders: 1}\ndata: {size: 2MiB}"
	t.Run("nginx", func(t *testing.T) {
		nginx, err := exec.LookPath("nginx")
		if err != nil {
			t.Skip(err)
		}
		text := strings.Replace(overhead, "size: 10kB", "size: [1kB, 100kB]", 1)
		inPods(t, bundle(t, "nginx", nginx), text+"\nsystems: [static, nginx]"+emulated, 8)
	})
	for _, python := range []struct {
		system, program, run string
		trials               int
	}{{"tahoe", "tahoe", overhead, 2}, {"deluge", "deluged", swarm, 1}} {
		t.Run(python.system, func(t *testing.T) {
			bin, files := environment(t, python.system)
			inPods(t, bundle(t, python.system, files...), python.run+"\nsystems: [{use: "+python.system+
				", with: {binary: "+bin+"/"+python.program+"}}]"+emulated, python.trials)
		})
	}
	for _, given := range []struct {
		system   string
		programs []string // as in PLIMSOLL_NAME
		name     string
		run      string
		trials   int
	}{
		{"siad", []string{"siad"}, "overhead", overhead, 2},
		{"siad", []string{"siad"}, "upload", "scenario: upload\nupload: {poll: 1s}\ndata: {objects: 3, size: 1kB}", 1},
		{"siad", []string{"siad"}, "sync", "scenario: sync\nsync: {blocks: 400, peers: 2, form: v1, transactions: 0}", 1},
		{"renterd", []string{"renterd", "hostd"}, "overhead", overhead, 2},
		{"kubo", []string{"ipfs"}, "overhead", overhead, 2},
		{"kubo", []string{"ipfs"}, "disseminate", swarm, 1},
		{"codex", []string{"codex"}, "overhead", overhead, 2},
		{"codex", []string{"codex"}, "disseminate", swarm, 1},
	} {
		t.Run(given.system+"/"+given.name, func(t *testing.T) {
			var files []string
			for _, program := range given.programs {
				variable := "PLIMSOLL_" + strings.ToUpper(strings.Replace(program, "ipfs", "kubo", 1))
				path := os.Getenv(variable)
				if path == "" {
					t.Skip(variable + " names no program")
				}
				files = append(files, path+"=/usr/local/bin/"+program)
			}
			inPods(t, bundle(t, given.system, files...), given.run+"\nsystems: ["+given.system+"]"+emulated, given.trials)
		})
	}
}

// Pods attach to a renter, here a simulated one outside of the cluster, and get objects from it.
func TestClusterUpload(t *testing.T) {
	c := real(t, "")
	sim := siasim.New(siasim.Config{Data: 1, Parity: 2, Hosts: 4, Contracts: 3, Sector: 256 << 10, Rate: 200e6})
	defer sim.Close()
	api, err := url.Parse(c.config.Host)
	must(t, err)
	l, err := net.Listen("tcp", net.JoinHostPort(api.Hostname(), "0"))
	must(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.SetBasicAuth("", siasim.Password)
		sim.Siad().ServeHTTP(w, r)
	})}
	defer server.Close()
	go func() { _ = server.Serve(l) }()
	inPods(t, testImage, `
scenario: upload
systems: [{use: siad, mode: attach, with: {url: "http://`+l.Addr().String()+`", password: ADDRESS}}]
data: {objects: 20, size: 1kB}
upload: {poll: 1s}
exit: {max_spend: 5000}
allow: [write, spend]
warmup: 0
limits: {others: none, machine: none}`, 1)
}
