package kubernetes

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/remote"
)

// How long pods may take: a cluster that adds nodes by itself needs minutes to make one, but one
// that was made is there.
const (
	readyTimeout = 10 * time.Minute
	findTimeout  = 2 * time.Minute
)

// await returns a run's n machines when the agents on the first need of them listen, or says why
// they do not: [remote.ErrGone] for the pod of a run that goes on, and is to be made anew.
func (c *Cluster) await(ctx context.Context, run string, n, need int) ([]remote.Machine, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	said := ""
	for begun := time.Now(); ; {
		pods, err := c.living(ctx, run)
		why := obstacle{what: "the API server does not answer"}
		if err == nil {
			var ready []*pod
			if ready, why = assemble(pods, n, need); ready != nil {
				return c.machines(ctx, run, ready), nil
			}
			if len(pods) < n && time.Since(begun) > 2*time.Second {
				why = c.refused(ctx, run, why)
			}
		} else {
			why.what += ": " + err.Error()
		}
		if why.log != "" {
			why.what += c.lastWords(ctx, run, why.log)
		}
		if why.unplaced && need < n {
			return nil, remote.ErrGone
		}
		if why.final {
			return nil, fmt.Errorf("kubernetes: run %s: %s", run, why.what)
		}
		if c.opt.Note != nil && why.what != said && time.Since(begun) > 10*time.Second {
			said = why.what
			c.opt.Note("waiting for machines: " + said)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("kubernetes: run %s: not all of %d machines are ready: %s", run, need, why.what)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// obstacle is why a run's pods are not ready.
type obstacle struct {
	what     string
	final    bool   // waiting does not help
	unplaced bool   // a pod has no node yet
	log      string // pod whose log says more
}

// assemble is the pods that have a run's n machines, in the order of their indices, when the
// first need of them are ready; nil in place of others that are not.
func assemble(pods []pod, n, need int) ([]*pod, obstacle) {
	ready := make([]*pod, n)
	why := obstacle{what: fmt.Sprintf("%d of %d pods have been made", len(pods), n)}
	for at := range pods {
		p := &pods[at]
		i, err := strconv.Atoi(p.Metadata.Annotations["batch.kubernetes.io/job-completion-index"])
		if err != nil || i < 0 || i >= n || p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded" {
			continue
		}
		if _, err := netip.ParseAddr(p.Status.IP); err == nil && p.Status.Conditions.are("Ready") {
			ready[i] = p
		} else if i < need && !why.final {
			why = reason(p)
		}
	}
	if slices.Contains(ready[:need], nil) {
		return nil, why
	}
	return ready, obstacle{}
}

// reason is why a pod is not ready.
func reason(p *pod) obstacle {
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			return obstacle{unplaced: true, what: fmt.Sprintf("no node for pod %s: %s "+
				"(a machine has a node of its own unless --pack is given)", p.Metadata.Name, c.Message)}
		}
	}
	for _, s := range p.Status.Containers {
		w := s.State.Waiting
		if w == nil {
			continue
		}
		o := obstacle{what: fmt.Sprintf("pod %s on %s: %s", p.Metadata.Name, p.Spec.NodeName, w.Reason)}
		if w.Message != "" {
			o.what += ": " + w.Message
		}
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName":
			o.final = w.Reason != "ErrImagePull" // it is tried once more
			o.what = fmt.Sprintf("image %s cannot be pulled by node %s (--image names another): %s: %s", s.Image,
				p.Spec.NodeName, w.Reason, w.Message)
		case "CrashLoopBackOff":
			o.final, o.log = true, p.Metadata.Name
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			o.final = true
		}
		return o
	}
	return obstacle{what: fmt.Sprintf("pod %s on %s is %s", p.Metadata.Name, p.Spec.NodeName, p.Status.Phase)}
}

// refused looks for why pods are not made: a quota, or a policy that refuses them.
func (c *Cluster) refused(ctx context.Context, run string, otherwise obstacle) obstacle {
	var events list[struct{ Message string }]
	of := "?fieldSelector=reason%3DFailedCreate,involvedObject.name%3D" + nameOf(run)
	err := c.get(ctx, at(coreAPI, c.namespace(run), "events")+of, &events)
	if err != nil || len(events.Items) == 0 {
		return otherwise
	}
	return obstacle{what: "the cluster refuses a pod: " + events.Items[len(events.Items)-1].Message, final: true}
}

// lastWords is the end of the log of a container that has ended.
func (c *Cluster) lastWords(ctx context.Context, run, pod string) string {
	var log string
	last := "?previous=true&tailLines=5&limitBytes=2000"
	if c.get(ctx, at(coreAPI, c.namespace(run), "pods", pod, "log")+last, &log) != nil {
		return ""
	}
	return "; its log ends: " + strings.TrimSpace(log)
}

const zoneLabel = "topology.kubernetes.io/zone"

// machines are those of pods. The zone is the node's, for those who may look at nodes.
func (c *Cluster) machines(ctx context.Context, run string, pods []*pod) (all []remote.Machine) {
	emulated := slices.ContainsFunc(pods, func(p *pod) bool { return p != nil && p.Metadata.Labels[linksLabel] != "" })
	for i, p := range pods {
		number := 0
		if emulated {
			number = i + 1
		}
		if p == nil {
			all = append(all, remote.Machine{Name: fmt.Sprintf("pod%d", i), Number: number})
			continue
		}
		addr := netip.MustParseAddr(p.Status.IP)
		m := remote.Machine{
			Name: fmt.Sprintf("pod%d", i), Node: p.Spec.NodeName, Zone: p.Metadata.Labels[zoneLabel],
			Addr: addr, Agent: netip.AddrPortFrom(addr, agentPort), Dir: workDir, Number: number,
		}
		var n node
		if m.Zone == "" && c.get(ctx, at(coreAPI, "", "nodes", m.Node), &n) == nil {
			m.Zone = n.Metadata.Labels[zoneLabel]
		}
		c.mu.Lock()
		c.pods[m] = podName{c.namespace(run), p.Metadata.Name}
		c.mu.Unlock()
		all = append(all, m)
	}
	return all
}
