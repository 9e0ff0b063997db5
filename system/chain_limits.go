package system

import (
	"fmt"
	"slices"
	"strings"
)

// ChainLimits are the chains and peers that a system supports. The zero value supports all.
type ChainLimits struct {
	Forms        []string // of ChainSpec.Form; empty: any
	Blocks       int      // at most; 0: no limit
	Transactions int      // in a block, at most; 0: no limit, −1: none possible
	Without      []string // manners that are not supported
}

// Problems reports why a chain of that spec, or peers with these manners, are not possible.
func (l ChainLimits) Problems(spec ChainSpec, manners []string) (all []Problem) {
	wrong := func(hint, format string, args ...any) {
		all = append(all, Problem{What: fmt.Sprintf(format, args...), Hint: hint})
	}
	if len(l.Forms) > 0 && !slices.Contains(l.Forms, spec.Form) {
		wrong("use sync.form: "+l.Forms[0], "it has no chain of the form %s; it has %s", spec.Form,
			strings.Join(l.Forms, " and "))
	}
	if l.Blocks > 0 && spec.Blocks > l.Blocks {
		wrong(fmt.Sprintf("use sync.blocks: %d, or less", l.Blocks), "it has no chain of %d blocks; %d are the most",
			spec.Blocks, l.Blocks)
	}
	if most := max(0, l.Transactions); l.Transactions != 0 && spec.Transactions > most {
		wrong(fmt.Sprintf("use sync.transactions: %d", most), "its blocks cannot be given %d transactions; %d are "+
			"the most", spec.Transactions, most)
	}
	for _, m := range manners {
		if slices.Contains(l.Without, m) {
			wrong(fmt.Sprintf("take `%s` out of sync.trouble", m), "none of its peers can be a %s one", m)
		}
	}
	return all
}
