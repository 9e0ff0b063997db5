package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
)

// spoilt is bittorrent on a disk that changes a bit of what the first leecher has
// got, after its client has checked every piece and calls the content complete.
type spoilt struct{ bittorrent.System }

type spoiltCluster struct {
	system.Cluster
	nodes []system.Node

	mu   sync.Mutex
	done map[system.Ref]bool
}

func (c *spoiltCluster) Nodes() []system.Node { return c.nodes }

// spoiltNode is a node of bittorrent with what scenario disseminate asks of it.
type spoiltNode struct {
	system.Member
	system.Restarter
	system.Healther

	cluster *spoiltCluster
	dir     string
}

func (s spoilt) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	inner, err := s.System.Start(ctx, d)
	if err != nil {
		return nil, err
	}
	c := &spoiltCluster{Cluster: inner, done: map[system.Ref]bool{}}
	for i, n := range inner.Nodes() {
		c.nodes = append(c.nodes, &spoiltNode{n.(system.Member), n.(system.Restarter), n.(system.Healther), c,
			filepath.Join(d.DirOf(d.Hosts[i]), fmt.Sprintf("node-%d", i+1))})
	}
	return c, nil
}

// Progress implements system.Member.
func (n *spoiltNode) Progress(ctx context.Context, ref system.Ref) (system.Progress, error) {
	f, err := n.Member.Progress(ctx, ref)
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	if err != nil || !f.Complete || f.Received <= 0 || n.cluster.done[ref] {
		return f, err
	}
	n.cluster.done[ref] = true
	file, err := os.OpenFile(filepath.Join(n.dir, string(ref), "content"), os.O_RDWR, 0)
	if err != nil {
		return f, err
	}
	defer file.Close()
	var b [1]byte
	if _, err := file.ReadAt(b[:], f.Size/2); err != nil {
		return f, err
	}
	b[0] ^= 1
	_, err = file.WriteAt(b[:], f.Size/2)
	return f, err
}

// A client that calls its content complete and has other bytes on its disk is
// never ok: not in the record, not in the result, not in the report.
func TestSwarmOfWrongBytes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	needLinks(t)
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := Run(ctx, Config{Plan: swarmPlan(t, fmt.Sprintf(swarmExperiment, 3, "")),
		Systems: []system.System{spoilt{}}, Scenario: disseminate.Scenario{}, Dir: dir})
	must(t, err)
	if res.Trials != 2 || res.WrongBytes != 2 {
		t.Errorf("got %+v, want 2 trials with a leecher each that has wrong bytes", res)
	}
	rec, err := record.Open(dir)
	must(t, err)
	defer rec.Close()
	trials, err := rec.Trials()
	must(t, err)
	for _, trial := range trials {
		count := map[string]int{}
		for op, err := range rec.Ops(trial.ID) {
			must(t, err)
			count[op.Kind.String()+" "+op.Outcome.String()]++
		}
		for _, what := range []string{"fetch ok", "fetch wrong-bytes"} {
			if count[what] != 1 {
				t.Errorf("block %d: %v", trial.Block, count)
			}
		}
		if _, has := trial.Metrics["time_last"]; has {
			t.Errorf("block %d: there is a time until all have it: %v", trial.Block, trial.Metrics)
		}
	}
	rep, err := report.Build(rec)
	must(t, err)
	i := slices.IndexFunc(rep.Findings, func(f analysis.Finding) bool { return f.Rule == "wrong-bytes" })
	if i < 0 || !strings.Contains(strings.Join(rep.Findings[i].Evidence, "; "), "bittorrent") {
		t.Errorf("the report does not say so: %+v", rep.Findings)
	}
}
