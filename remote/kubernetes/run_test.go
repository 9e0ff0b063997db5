package kubernetes

import (
	"bytes"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// plimsoll is a process started as by a user.
type plimsoll struct {
	t   *testing.T
	cmd *exec.Cmd
	log string // file with its output
	end chan error
}

func call(t *testing.T, args ...string) *plimsoll {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	must(t, err)
	defer log.Close()
	cmd := exec.Command(os.Getenv("PLIMSOLL_BINARY"), args...)
	p := &plimsoll{t: t, cmd: cmd, log: log.Name(), end: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	must(t, p.cmd.Start())
	go func() { p.end <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// ends waits for the end of the process and returns its exit status. It logs the output for the
// analysis of failures.
func (p *plimsoll) ends(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.end:
	case <-time.After(within):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		p.t.Errorf("plimsoll %v does not end in %s", p.cmd.Args[1:], within)
		<-p.end
	}
	p.t.Logf("plimsoll %s: %s\n%s", strings.Join(p.cmd.Args[1:], " "), p.cmd.ProcessState, p.said())
	return p.cmd.ProcessState.ExitCode()
}

func (p *plimsoll) said() string {
	b, err := os.ReadFile(p.log)
	must(p.t, err)
	return string(b)
}

// recorded returns the trials and the links of a run directory.
func recorded(t *testing.T, dir string) (all []record.Trial, links []record.LinkCheck) {
	t.Helper()
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	all, err = r.Trials()
	must(t, err)
	links, err = r.Links()
	must(t, err)
	return all, links
}

// trials returns the number of trials of a run directory by state, and the reasons of the invalid
// ones.
func trials(t *testing.T, dir string) (states map[record.TrialState]int, reasons []string) {
	t.Helper()
	states = map[record.TrialState]int{}
	all, _ := recorded(t, dir)
	for _, trial := range all {
		states[trial.State]++
		reasons = append(reasons, trial.Invalid...)
	}
	return states, reasons
}

// namespaces returns the namespaces of all runs in the cluster.
func namespaces(t *testing.T, c *Cluster) []meta.PartialObjectMetadata {
	t.Helper()
	var all meta.PartialObjectMetadataList
	must(t, c.get(t.Context(), at(coreAPI, "", "namespaces")+ofRuns(""), &all))
	return all.Items
}

// nothingLeft fails if anything of any run is left in the cluster.
func nothingLeft(t *testing.T, c *Cluster) {
	t.Helper()
	for _, ns := range namespaces(t, c) {
		t.Errorf("namespace %s is left", ns.Name)
	}
}

// begun waits until the only run in the cluster is in its third block, and returns its machines.
func begun(t *testing.T, c *Cluster, p *plimsoll) []remote.Machine {
	t.Helper()
	within(t, 3*time.Minute, "its third block has begun", func() bool {
		return strings.Contains(p.said(), "block 3 of")
	})
	run := ""
	for _, ns := range namespaces(t, c) {
		if ns.DeletionTimestamp == nil {
			run = ns.Labels[runLabel]
		}
	}
	machines, err := c.Find(t.Context(), run, remote.Machine{})
	must(t, err)
	return machines
}

const manyTrials = `
scenario: retrieve
systems: [static]
data: {objects: 1, size: 1MiB}
retrieve: {range: 64KiB, concurrency: [1, 4], duration: 500ms}
repetitions: 10
warmup: 0
limits: {others: none, machine: none}
`

// manyTrialsAre is the number of trials of manyTrials.
const manyTrialsAre = 20

func experimentFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "experiment.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// runOn runs an experiment on the cluster, or in a namespace of it.
func runOn(t *testing.T, on, experiment string, more ...string) (dir string, p *plimsoll) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	args := []string{"run", experiment, "--out", dir, "--on", "kubernetes" + on, "--image", testImage, "--keep-going"}
	return dir, call(t, append(args, more...)...)
}

// The README's first command on a cluster creates a page with valid bytes from pods on several
// nodes.
func TestClusterQuickstart(t *testing.T) {
	c := real(t, "")
	repetitions := 6
	if testing.Short() {
		repetitions = 1
	}
	dir, p := runOn(t, "", "quickstart", "--set", "link.rate=unlimited", "--set", "link.delay=0s",
		"--set", "limits.others=none", "--set", "limits.machine=none", "--set", "repetitions="+strconv.Itoa(repetitions))
	p.ends(5 * time.Minute)
	states, reasons := trials(t, dir)
	if states[record.Done] != 9*repetitions || len(states) != 1 { // some may be invalid
		t.Errorf("trials %v, not valid for %v", states, reasons)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	named := 0
	for _, node := range []string{"node1", "node2", "node3"} {
		if bytes.Contains(page, []byte(node)) {
			named++
		}
	}
	if named != 2 {
		t.Errorf("a page of %d bytes names %d nodes: %v", len(page), named, err)
	}
	nothingLeft(t, c)
}

const swarm = `
scenario: disseminate
systems: [bittorrent]
data: {size: 2MiB}
disseminate: {nodes: 16, faults: [none, [{crash: leechers, count: 2, at: 20%, for: 200ms}]]}
repetitions: 1
warmup: 0
limits: {others: none, machine: none, deadline: 2m, start: 2m}
`

// A swarm of 16 nodes with crashes uses more machines than there are nodes in the cluster.
func TestClusterSwarm(t *testing.T) {
	c := real(t, "")
	dir, p := runOn(t, "", experimentFile(t, swarm), "--pack")
	if status := p.ends(5 * time.Minute); status != 0 {
		t.Errorf("status %d", status)
	}
	states, reasons := trials(t, dir)
	if states[record.Done] != 2 || slices.Contains(reasons, record.ReasonMachineLost) ||
		slices.Contains(reasons, record.ReasonLinkOff) {
		t.Errorf("trials %v, not valid for %v", states, reasons)
	}
	nothingLeft(t, c)
}

const emulatedSwarm = `
scenario: disseminate
systems: [bittorrent]
data: {size: 2MiB}
link: {rate: 20Mbit, delay: 20ms}
disseminate: {nodes: 3, seeders: 1}
repetitions: 1
warmup: 0
limits: {others: none, machine: none, deadline: 2m, start: 2m}
`

const emulatedRetrieve = `
scenario: retrieve
systems: [static]
data: {objects: 1, size: 1MiB}
link: {rate: 20Mbit, delay: 20ms}
retrieve: {range: 64KiB, concurrency: 2, requests: 20}
repetitions: 1
warmup: 0
limits: {others: none, machine: none}
`

// Links between pods are emulated by our emulator (level baseline) or, if available, by the
// kernels' netem (level privileged), have the requested properties, and carry the right bytes. A
// busy machine may make them late and slow.
func TestClusterEmulatedLinks(t *testing.T) {
	c := real(t, "")
	for _, run := range []struct {
		name, experiment, clients, emulator, recorded string
		operations, bytes                             int64
	}{
		{"swarm", emulatedSwarm, "1", "auto", record.MeshLink, 2, 2 * 2 << 20},
		{"retrieve", emulatedRetrieve, "2", "auto", record.MeshLink, 20, 20 * 64 << 10},
		{"swarm by netem", emulatedSwarm, "1", "netem", record.KernelMeshLink, 2, 2 * 2 << 20},
		{"retrieve by netem", emulatedRetrieve, "2", "netem", record.KernelMeshLink, 20, 20 * 64 << 10},
	} {
		t.Run(run.name, func(t *testing.T) {
			if err := link.Works(link.NetemDiscipline); run.emulator == "netem" && err != nil {
				t.Skip("this kernel has no netem: ", err)
			}
			dir, p := runOn(t, "", experimentFile(t, run.experiment), "--pack", "--clients", run.clients,
				"--set", "link.emulator="+run.emulator)
			p.ends(5 * time.Minute)
			all, links := recorded(t, dir)
			if len(all) != 1 || all[0].State != record.Done || all[0].Bytes != run.bytes ||
				!maps.Equal(all[0].Outcomes, map[string]int64{record.OK.String(): run.operations}) {
				t.Errorf("trials %+v", all)
			}
			if len(links) == 0 {
				t.Error("no link was checked")
			}
			for _, l := range links {
				if l.Emulator != run.recorded || l.WantRTT < 40e-3 || l.RTT < 39e-3 || l.RTT > 80e-3 ||
					l.WantRate > 20e6 || l.Rate < 0.5*l.WantRate || l.Rate > 1.05*l.WantRate {
					t.Errorf("link %+v", l)
				}
				t.Logf("%s to %s: round trip %.2f ms of %.2f, rate %.4g of %.4g", l.From, l.To, l.RTT*1e3,
					l.WantRTT*1e3, l.Rate, l.WantRate)
			}
			nothingLeft(t, c)
		})
	}
}

// If the cluster gives pods a CPU limit, each trial that it throttled is marked.
func TestClusterThrottled(t *testing.T) {
	notShort(t)
	c := real(t, "/limited")
	namespace(t, c, "limited")
	limit := fields{"cpu": "200m"}
	made(t, c, at(coreAPI, "limited", "limitranges"), "limit", fields{
		"limits": []fields{{"type": "Container", "default": limit, "defaultRequest": limit}},
	})
	dir, p := runOn(t, ":/limited", experimentFile(t, manyTrials), "--set", "repetitions=2", "--pack")
	p.ends(4 * time.Minute)
	if states, reasons := trials(t, dir); !slices.Contains(reasons, record.ReasonThrottled) {
		t.Errorf("trials %v, not valid for %v", states, reasons)
	}
}

// again waits until a run has replaced that many machines and continued.
func again(t *testing.T, p *plimsoll, times int) {
	t.Helper()
	within(t, 3*time.Minute, "another machine is used", func() bool {
		return strings.Count(p.said(), "is on another machine now") >= times
	})
}

// A deleted pod costs a trial, and is replaced; a minute without the API server costs nothing.
func TestClusterTrouble(t *testing.T) {
	notShort(t)
	c := real(t, "")
	dir, p := runOn(t, "", experimentFile(t, manyTrials))
	must(t, c.call(t.Context(), http.MethodDelete, begun(t, c, p)[1].ID, nil, nil))
	again(t, p, 1)
	script(t, "signal", "apiserver", "STOP")
	time.Sleep(time.Minute)
	script(t, "signal", "apiserver", "CONT")
	p.ends(6 * time.Minute)
	if states, _ := trials(t, dir); states[record.Done] < manyTrialsAre-4 || states[record.Running] > 0 {
		t.Errorf("trials %v", states)
	}
	nothingLeft(t, c)
}

// A killed agent costs a trial. A killed launcher costs nothing: the run continues, and can be
// followed again. Neither does a killed engine: its pod's container is restarted with its files.
func TestClusterKills(t *testing.T) {
	c := real(t, "")
	dir, p := runOn(t, "", experimentFile(t, manyTrials))
	machines := begun(t, c, p)
	kill := func(m remote.Machine) {
		must(t, syscall.Kill(agentPID(t, m), syscall.SIGKILL))
	}
	kill(machines[1])
	again(t, p, 1)
	must(t, p.cmd.Process.Kill())
	p.ends(time.Minute)
	p = call(t, "resume", dir, "--keep-going")
	within(t, time.Minute, "the run is followed again", func() bool { return strings.Contains(p.said(), "block") })
	kill(machines[0])
	if status := p.ends(3 * time.Minute); status == 0 {
		t.Error("the engine was killed, and the run was over")
	}
	if done, _ := trials(t, dir); done[record.Done] < 3 {
		t.Errorf("what was brought here has trials %v", done)
	}
	call(t, "resume", dir, "--keep-going").ends(5 * time.Minute)
	if states, _ := trials(t, dir); states[record.Done] < manyTrialsAre-2 || states[record.Running] > 0 {
		t.Errorf("trials %v", states)
	}
	nothingLeft(t, c)
}

// A lost node ends the run of a system on it; resume continues on the remaining nodes. It is the
// last test, because the node is lost for good.
func TestClusterZLostNode(t *testing.T) {
	notShort(t)
	c := real(t, "")
	dir, p := runOn(t, "", experimentFile(t, manyTrials))
	machines := begun(t, c, p)
	script(t, "lose", strings.TrimPrefix(machines[1].Node, "node"))
	p.ends(5 * time.Minute)
	states, reasons := trials(t, dir)
	if !slices.Contains(reasons, record.ReasonMachineLost) && states[record.Failed] == 0 &&
		!strings.Contains(p.said(), "is lost") {
		t.Errorf("trials %v, not valid for %v", states, reasons)
	}
	nothingLeft(t, c)
	call(t, "resume", dir, "--keep-going").ends(5 * time.Minute)
	if states, _ := trials(t, dir); states[record.Done] < manyTrialsAre {
		t.Errorf("trials %v", states)
	}
	nothingLeft(t, c)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
