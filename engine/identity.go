package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// identityChanges says how a system that a trial goes on with differs from the
// one that it was begun with: a daemon that was upgraded in between. What a
// deployment is given anew each time, such as a free port, is no difference.
func identityChanges(before, now map[string]string) []string {
	var changes []string
	keys := maps.Clone(before)
	if keys == nil {
		return nil
	}
	maps.Copy(keys, now)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if a, b := before[key], now[key]; a != b && key != "endpoint" {
			changes = append(changes, fmt.Sprintf("%s: %q, was %q", key, b, a))
		}
	}
	return changes
}

// earlierIdentities are those that the earlier session recorded, by system.
func (r *run) earlierIdentities() map[string]map[string]string {
	var all map[string]map[string]string
	_ = json.Unmarshal([]byte(r.rec.Reader.Meta()["systems"]), &all) // a session that came to nothing left none
	return all
}

// noteChange compares a system's identity with that of the session before.
func (r *run) noteChange(s *site) {
	now := s.cluster.Identity()
	if before, ok := r.identities[s.use.Name]; ok {
		if changes := identityChanges(before, now); len(changes) > 0 {
			s.changed = strings.Join(changes, "; ")
			r.event("note", "system changed", s.use.Name+": "+s.changed, 0)
			r.say.Note(s.use.Name + " is not what it was when the trial began: " + s.changed)
		}
	}
	if r.identities == nil {
		r.identities = map[string]map[string]string{}
	}
	r.identities[s.use.Name] = now
}
