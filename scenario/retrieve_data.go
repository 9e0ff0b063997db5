package scenario

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// retrieveObject is an object that can be fetched, with what is needed to tell
// whether the right bytes came: its seeded content, or a reference copy.
type retrieveObject struct {
	name      string
	ref       system.Ref
	size      int64
	content   *workload.Content
	reference string
	noRange   bool
}

// dataSet stores the objects of a cell in the system, or, when the system has
// objects of its own, fetches a reference copy of each where the cells verify.
func (r *retrieveRunner) dataSet(ctx context.Context, node system.Node, c experiment.Cell) ([]retrieveObject, error) {
	if c.Data.Size == 0 {
		return r.ownObjects(ctx, node, c)
	}
	set := make([]retrieveObject, 0, c.Data.Objects)
	for i := range c.Data.Objects {
		// The seed is mixed with the size, so that two data sets have no byte in common.
		content := &workload.Content{Seed: r.site.Seed ^ uint64(c.Data.Size), Index: uint64(i), Size: int64(c.Data.Size)}
		name := fmt.Sprintf("plimsoll-%d-%d-%06d.bin", r.site.Seed, int64(c.Data.Size), i)
		begun := time.Now()
		ref, err := system.Seed(ctx, node, name, content.Size, content.Reader())
		if err != nil {
			return nil, fmt.Errorf("%s: store object %s (%s): %w", r.site.Use.Name, name, c.Data.Size, err)
		}
		if took := time.Since(begun); took > time.Second {
			r.site.Event("phase", "object stored", fmt.Sprintf("%s: %s", r.site.Use.Name, name), took)
		}
		set = append(set, retrieveObject{name: name, ref: ref, size: content.Size, content: content})
	}
	return set, nil
}

func (r *retrieveRunner) ownObjects(ctx context.Context, node system.Node, c experiment.Cell) ([]retrieveObject, error) {
	provider, ok := node.(system.Provider)
	if !ok {
		return nil, fmt.Errorf("%s: it has no objects of its own; give data.size in the experiment file", r.site.Use.Name)
	}
	objects, err := provider.Objects(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: list its objects: %w", r.site.Use.Name, err)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s: it lists no objects", r.site.Use.Name)
	}
	var set []retrieveObject
	for i, o := range objects {
		ro := retrieveObject{name: o.Name, ref: o.Ref, size: o.Size, noRange: o.NoRange}
		if c.Retrieve.Range > 0 {
			switch {
			case o.NoRange:
				return nil, fmt.Errorf("%s: %s does not serve ranges; fetch it whole (range: whole)", r.site.Use.Name, o.Name)
			case o.Size >= 0 && o.Size < int64(c.Retrieve.Range):
				return nil, fmt.Errorf("%s: %s has %d bytes, fewer than the range of %s", r.site.Use.Name, o.Name, o.Size, c.Retrieve.Range)
			}
		}
		if ro.reference, ro.size, err = r.referenceCopy(ctx, node, o, i); err != nil {
			return nil, err
		}
		set = append(set, ro)
	}
	return set, nil
}

// referenceCopy fetches an object of unknown content once, before anything is
// measured, so that every later byte can be compared with it.
func (r *retrieveRunner) referenceCopy(ctx context.Context, node system.Node, o system.Object, i int) (path string, size int64, err error) {
	path = filepath.Join(r.site.Dir, fmt.Sprintf("reference-%d", i))
	r.site.Say(fmt.Sprintf("%s: fetching a reference copy of %s", r.site.Use.Name, o.Name))
	begun := time.Now()
	f, err := os.Create(path)
	if err != nil {
		return "", 0, fmt.Errorf("%s: reference copy of %s: %w", r.site.Use.Name, o.Name, err)
	}
	defer f.Close()
	hash := sha256.New()
	count := &counter{w: io.MultiWriter(f, hash)}
	if err := node.Get(ctx, o.Ref, count); err != nil {
		return "", 0, fmt.Errorf("%s: reference copy of %s: %w", r.site.Use.Name, o.Name, err)
	}
	if err := f.Close(); err != nil {
		return "", 0, fmt.Errorf("%s: reference copy of %s: %w", r.site.Use.Name, o.Name, err)
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	if o.SHA256 != "" && !strings.EqualFold(o.SHA256, sum) {
		return "", 0, fmt.Errorf("%s: %s has SHA-256 %s, its list says %s", r.site.Use.Name, o.Name, sum, o.SHA256)
	}
	if o.Size >= 0 && o.Size != count.n {
		return "", 0, fmt.Errorf("%s: %s is said to have %d bytes, %d came", r.site.Use.Name, o.Name, o.Size, count.n)
	}
	r.site.Event("phase", "reference copy", fmt.Sprintf("%s: %s, %d bytes, sha256 %s", r.site.Use.Name, o.Name, count.n, sum), time.Since(begun))
	return path, count.n, nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
