package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// metaClients is the key of the number of load generator processes.
const metaClients = "clients"

// recordEnvironment records what is needed to judge the run: the machine, the testbed, the
// identity of every system, and the numbers in its code that affect results and cannot be
// set.
func (r *run) recordEnvironment() error {
	systems, constants := map[string]map[string]string{}, map[string][]system.Constant{}
	for name, s := range r.sites {
		systems[name] = r.identities[name]
		if s.cluster != nil { // nil: it could not be restarted
			systems[name] = identityOf(s.cluster)
		}
		if fixed := s.sys.Info().Constants; len(fixed) > 0 {
			constants[name] = fixed
		}
	}
	environment := r.bed.Environment()
	maps.Copy(environment, r.cfg.Where)
	all := map[string]any{"environment": environment, "testbed": r.bed.Mode(), "systems": systems}
	if n := r.clients(); n > 1 {
		all[metaClients] = n
	}
	if r.cache != "" {
		all["chains"] = r.cache
	}
	if len(constants) > 0 {
		all["constants"] = constants
	}
	for key, v := range all {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("engine: record %s: %w", key, err)
		}
		if err := r.rec.Meta(key, string(b)); err != nil {
			return err
		}
	}
	return nil
}

// identityOf returns the identity of a cluster, with the container images of its programs.
func identityOf(c system.Cluster) map[string]string {
	id := c.Identity()
	all := maps.Clone(id)
	for key, program := range id {
		i, _, ok := image.Of(program)
		switch {
		case ok && key == "binary":
			all[system.ImageName] = i.String()
		case ok:
			all[key+"_"+system.ImageName] = i.String()
		}
	}
	return all
}

// noteChange reports how a system differs from the previous session, for example because a
// daemon was upgraded. Endpoints of deployments always differ.
func (r *run) noteChange(s *site) {
	before, now := r.identities[s.use.Name], identityOf(s.cluster)
	r.identities[s.use.Name] = now
	if before == nil {
		return
	}
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(before)) { // a new key may just be new in Plimsoll
		if a, b := before[key], now[key]; a != b && key != "endpoint" {
			changes = append(changes, fmt.Sprintf("%s: %q, was %q", key, b, a))
		}
	}
	if len(changes) > 0 { // otherwise keep an earlier change of this session
		s.changed = strings.Join(changes, "; ")
		r.event("note", "system changed", s.use.Name+": "+s.changed, 0)
		r.say.Note(s.use.Name + " is not what it was when the trial began: " + s.changed)
	}
}
