package kubernetes

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/remote"
)

// Time limits for pods to become ready: a cluster that adds nodes by itself needs minutes for a new
// one, but an existing run already has its nodes.
const (
	readyTimeout = 10 * time.Minute
	findTimeout  = 2 * time.Minute
)

// await waits until the agents on the first need of a run's n machines listen, and returns all
// machines. Its error contains the reason if they do not. It returns [remote.ErrGone] if a pod of
// an existing run cannot be placed on a node, so that the run must be created anew.
func (c *Cluster) await(ctx context.Context, run string, n, need int) ([]remote.Machine, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	said, why := "", obstacle{}
	for begun := time.Now(); ctx.Err() == nil; timing.Pause(ctx, 300*time.Millisecond) {
		pods, err := c.living(ctx, run)
		why = obstacle{what: "the API server does not answer"}
		if err == nil {
			var ready []*core.Pod
			if ready, why = assemble(pods, n, need); ready != nil {
				return c.machines(ctx, run, ready), nil
			}
			if len(pods) < n && time.Since(begun) > 2*time.Second {
				why = c.refused(ctx, run, why)
			}
		} else {
			why.what += ": " + err.Error()
		}
		switch {
		case why.unplaced && need < n:
			return nil, remote.ErrGone
		case why.final:
			return nil, fmt.Errorf("kubernetes: run %s: %s%s", run, why.what, c.lastWords(ctx, run, why.pod))
		case c.opt.Note != nil && why.what != said && time.Since(begun) > 10*time.Second:
			said = why.what
			c.opt.Note("waiting for machines: " + said)
		}
	}
	return nil, fmt.Errorf("kubernetes: run %s: not all of %d machines are ready: %s", run, need, why.what)
}

// obstacle is the reason why a run's pods are not ready.
type obstacle struct {
	what     string
	final    bool   // waiting does not help
	unplaced bool   // a pod has no node yet
	pod      string // whose log may contain more information
}

// assemble returns the pods of a run's n machines, by index, if the first need of them are ready.
// Other pods that are not ready are nil.
func assemble(pods []core.Pod, n, need int) ([]*core.Pod, obstacle) {
	ready := make([]*core.Pod, n)
	why := obstacle{what: fmt.Sprintf("%d of %d pods have been made", len(pods), n)}
	for at := range pods {
		p := &pods[at]
		i, err := strconv.Atoi(p.Annotations[batch.JobCompletionIndexAnnotation])
		if err != nil || i < 0 || i >= n || p.Status.Phase == core.PodFailed || p.Status.Phase == core.PodSucceeded {
			continue
		}
		_, noAddress := netip.ParseAddr(p.Status.PodIP)
		if noAddress == nil && condition(p, core.PodReady).Status == core.ConditionTrue {
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

// condition returns a condition of a pod; empty: unknown.
func condition(p *core.Pod, of core.PodConditionType) (c core.PodCondition) {
	if i := slices.IndexFunc(p.Status.Conditions, func(c core.PodCondition) bool { return c.Type == of }); i >= 0 {
		c = p.Status.Conditions[i]
	}
	return c
}

// hopeless lists reasons for a container not to start that waiting does not resolve.
var hopeless = []string{
	"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CrashLoopBackOff", "CreateContainerConfigError",
	"CreateContainerError", "RunContainerError",
}

// pushImage describes how to provide the agents' image to a cluster.
const pushImage = "push plimsoll_VERSION_image.tar of a release to a registry of yours (skopeo copy --all " +
	"oci-archive:FILE docker://NAME), and say --image NAME"

// reason returns the reason why a pod is not ready.
func reason(p *core.Pod) obstacle {
	if c := condition(p, core.PodScheduled); c.Status == core.ConditionFalse {
		return obstacle{unplaced: true, what: fmt.Sprintf("no node for pod %s: %s "+
			"(a machine has a node of its own unless --pack is given)", p.Name, c.Message)}
	}
	for _, s := range p.Status.ContainerStatuses {
		w := s.State.Waiting
		if w == nil {
			continue
		}
		o := obstacle{
			what:  fmt.Sprintf("pod %s on %s: %s: %s", p.Name, p.Spec.NodeName, w.Reason, w.Message),
			final: slices.Contains(hopeless, w.Reason), pod: p.Name,
		}
		if strings.Contains(w.Reason, "Image") {
			o.what += "; " + pushImage
		}
		return o
	}
	return obstacle{what: fmt.Sprintf("pod %s on %s is %s", p.Name, p.Spec.NodeName, p.Status.Phase)}
}

// refused looks for the reason why pods are not created: a quota, or a policy that refuses them.
func (c *Cluster) refused(ctx context.Context, run string, otherwise obstacle) obstacle {
	var events core.EventList
	of := "?fieldSelector=reason%3DFailedCreate,involvedObject.name%3D" + nameOf(run)
	err := c.get(ctx, at(coreAPI, c.namespace(run), "events")+of, &events)
	if err != nil || len(events.Items) == 0 {
		return otherwise
	}
	return obstacle{what: "the cluster refuses a pod: " + events.Items[len(events.Items)-1].Message, final: true}
}

// lastWords returns the end of the log of a terminated container.
func (c *Cluster) lastWords(ctx context.Context, run, pod string) string {
	last := "?previous=true&tailLines=5&limitBytes=2000"
	log, err := c.api.Get().RequestURI(at(coreAPI, c.namespace(run), "pods", pod, "log") + last).
		Timeout(callTimeout).DoRaw(ctx)
	if err != nil {
		return ""
	}
	return "; its log ends: " + strings.TrimSpace(string(log))
}

// machines returns the machines of pods. The zone is that of the node, if the user may read nodes.
func (c *Cluster) machines(ctx context.Context, run string, pods []*core.Pod) (all []remote.Machine) {
	emulated := slices.ContainsFunc(pods, func(p *core.Pod) bool { return p != nil && p.Labels[linksLabel] != "" })
	all = make([]remote.Machine, len(pods))
	for i, p := range pods {
		m := &all[i]
		m.Name = fmt.Sprintf("pod%d", i)
		if emulated {
			m.Number = i + 1
		}
		if p == nil {
			continue
		}
		m.ID, m.Dir = at(coreAPI, c.namespace(run), "pods", p.Name), workDir
		m.Node, m.Zone = p.Spec.NodeName, p.Labels[core.LabelTopologyZone]
		m.Addr = netip.MustParseAddr(p.Status.PodIP)
		m.Agent = netip.AddrPortFrom(m.Addr, agentPort)
		var n meta.PartialObjectMetadata
		if m.Zone == "" && c.get(ctx, at(coreAPI, "", "nodes", m.Node), &n) == nil {
			m.Zone = n.Labels[core.LabelTopologyZone]
		}
	}
	return all
}
