package engine

import (
	"encoding/json"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
)

// recordEnvironment stores what someone needs to judge the run: the machine,
// the testbed, the identity of every system and the numbers in its code that
// decide about results and cannot be set.
func (r *run) recordEnvironment() error {
	systems, constants := map[string]map[string]string{}, map[string][]system.Constant{}
	for name, s := range r.sites {
		systems[name] = s.cluster.Identity()
		if fixed := s.sys.Info().Constants; len(fixed) > 0 {
			constants[name] = fixed
		}
	}
	all := map[string]any{"environment": r.bed.Environment(), "testbed": r.bed.Mode(), "systems": systems}
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
