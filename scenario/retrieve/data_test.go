package retrieve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// If a server cannot serve ranges, the error has a hint what to write instead.
func TestRangesThatAServerDoesNotServe(t *testing.T) {
	own := object{name: "own"}
	own.Size, own.Undivided = 1<<20, "the server answers ranges with the whole"
	err := own.fits(1000)
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "retrieve.range to whole") ||
		!strings.HasPrefix(err.Error(), "own: ranges cannot be fetched") {
		t.Errorf("%v", err)
	}
}

// served is a node that accepts a limited number of objects, whose URLs are not fetched.
type served struct {
	*mem.Node
	room int
}

func (n *served) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if n.room--; n.room < 0 {
		return "", fmt.Errorf("full: %w", system.ErrQuota)
	}
	return n.Node.Seed(ctx, name, size, r)
}

func (*served) Target(ref system.Ref) (system.HTTPTarget, error) {
	u, err := url.Parse("http://127.0.0.1:1/" + url.PathEscape(string(ref)))
	return system.HTTPTarget{URL: u}, err
}

func cellOf(objects int) experiment.Cell {
	return experiment.Cell{Data: experiment.Data{Objects: objects, Size: 1000},
		Retrieve: &experiment.Retrieve{Concurrency: 1}}
}

// A failed preparation leaves no objects in an attached system.
func TestFailedPrepareLeavesNothing(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		n := &served{synthetic.MemNode(t, nil), 3}
		_, err := scenario.Prepare(t.Context(), Scenario{}, system.Info{}, synthetic.Site(system.Attach, n),
			[]experiment.Cell{cellOf(4)})
		if !errors.Is(err, system.ErrQuota) || !strings.HasPrefix(err.Error(), "it: ") {
			t.Error(err)
		}
		if n.room != -1 || synthetic.Objects(t, n.Node) != 0 {
			t.Errorf("room for %d, %d objects are left", n.room, synthetic.Objects(t, n.Node))
		}
	})
}

func TestPreparesEachDataSetOnce(t *testing.T) {
	own := cellOf(3)
	own.Data.Size = 0
	if objects, bytes := (Scenario{}).Prepares([]experiment.Cell{cellOf(3), cellOf(3), cellOf(5), own}); objects != 8 ||
		bytes != 8000 {
		t.Errorf("%d objects, %d bytes", objects, bytes)
	}
}
