package fanout

import (
	"fmt"
	"slices"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
)

// registry is what is handed over out of band: the contents' manifests, and who
// has published them. A leecher that knows of nodes which pass nothing on does
// not lose time with asking them.
type registry struct {
	mu sync.Mutex
	of map[system.Ref]*published
}

type published struct {
	manifest
	by map[int]string // addresses of the publishers by the index of the node
}

func (r *registry) add(ref system.Ref, m manifest, index int, address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, there := r.of[ref]
	if !there {
		p = &published{manifest: m, by: map[int]string{}}
		r.of[ref] = p
	}
	p.by[index] = address
}

// drop takes a node from the publishers of ref, or of all when ref is empty.
func (r *registry) drop(ref system.Ref, index int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for known, p := range r.of {
		if ref == "" || ref == known {
			delete(p.by, index)
		}
	}
}

// task is what node index gets to fetch ref from the given addresses: the
// publishers among them, beginning with another one for each leecher in turn. If
// none of them has published it, all of them.
func (r *registry) task(ref system.Ref, index int, from []string) (task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, there := r.of[ref]
	if !there {
		return task{}, fmt.Errorf("fanout: %s was published by no node here: %w", ref, system.ErrNotFound)
	}
	leechers := index // before this one
	var seeders []string
	for i := range p.by {
		if i < index {
			leechers--
		}
	}
	for _, a := range from {
		for _, known := range p.by {
			if a == known && !slices.Contains(seeders, a) {
				seeders = append(seeders, a)
			}
		}
	}
	if len(seeders) == 0 {
		return task{Manifest: p.manifest, From: from}, nil
	}
	slices.Sort(seeders) // the same order for all leechers
	first := leechers % len(seeders)
	return task{Manifest: p.manifest, From: slices.Concat(seeders[first:], seeders[:first])}, nil
}
