package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// earlierIdentities are those that the earlier session recorded, by system.
func (r *run) earlierIdentities() map[string]map[string]string {
	all := map[string]map[string]string{}
	_ = json.Unmarshal([]byte(r.rec.Reader.Meta()["systems"]), &all) // a session that came to nothing left none
	return all
}

// noteChange says how a system differs from what it was in the session before, such as
// a daemon that was upgraded. The endpoint of a deployment is another each time.
func (r *run) noteChange(s *site) {
	before, now := r.identities[s.use.Name], s.cluster.Identity()
	r.identities[s.use.Name] = now
	if before == nil {
		return
	}
	keys := maps.Clone(before)
	maps.Copy(keys, now)
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if a, b := before[key], now[key]; a != b && key != "endpoint" {
			changes = append(changes, fmt.Sprintf("%s: %q, was %q", key, b, a))
		}
	}
	if s.changed = strings.Join(changes, "; "); s.changed != "" {
		r.event("note", "system changed", s.use.Name+": "+s.changed, 0)
		r.say.Note(s.use.Name + " is not what it was when the trial began: " + s.changed)
	}
}
