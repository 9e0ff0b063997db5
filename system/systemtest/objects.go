package systemtest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
)

// sizes tests sizes around those of blocks and of literals in refs.
func (k *objects) sizes() {
	for _, size := range []int64{0, 1, 55, 56, 1 << 10, 256<<10 - 1, 256 << 10, 256<<10 + 1, 5 * mib} {
		name := fmt.Sprintf("size-%d", size)
		if size < k.Truths.MinSize {
			k.fails("put of less than the system takes", errorOf(k.n.Put(k.ctx(), name, size, Content(name, size))))
			continue
		}
		k.want(k.put(name, size))
		if k.seeds() {
			k.want(k.store(k.seed, "seed"+name, Bytes("seed"+name, size)))
		}
	}
}

func (k *objects) names() {
	all := map[system.Ref]object{}
	for _, name := range []string{
		"", " ", ".", "..", ".hidden", "../../up", "a/b/c", "a//b", "a b", "a%20b", "a+b", "a?b#c&d=e", "ünï→☃",
		"x\x00y",
		"new\nline", `back\slash`, `"quoted"`, "-rf", "CON:|*<>", "con", "aux.txt", "dot.", "dots..txt",
		"\xff\xfe", "=41", "A", strings.Repeat("long", 100),
		strings.Repeat("long", 101),
	} {
		o := k.put(name, 100)
		if _, shared := all[o.ref]; shared {
			k.Errorf("name %q and another share the ref %s", name, o.ref)
		}
		all[o.ref] = o
	}
	k.want(slices.Collect(maps.Values(all))...)
	same := Bytes("same content", 300)
	one, two := k.store(k.n.Put, "same-1", same), k.store(k.n.Put, "same-2", same)
	if content := k.Truths.ContentAddressed; (one.ref == two.ref) != content {
		k.Errorf("the same content has refs %s and %s; content addressed: %v", one.ref, two.ref, content)
	}
	k.want(one, two)
}

// ask returns each way to request an object of n that changes nothing.
func ask(n system.Getter) map[string]func(context.Context, system.Ref) error {
	ways := map[string]func(context.Context, system.Ref) error{
		"get": func(ctx context.Context, ref system.Ref) error { return n.Get(ctx, ref, io.Discard) },
	}
	if r, ok := n.(system.Ranger); ok {
		ways["range"] = func(ctx context.Context, ref system.Ref) error {
			return r.GetRange(ctx, ref, 0, 1, io.Discard)
		}
	}
	if s, ok := n.(system.Stater); ok {
		ways["stat"] = func(ctx context.Context, ref system.Ref) error { return errorOf(s.Stat(ctx, ref)) }
	}
	return ways
}

// unknownRefs requests refs that were never stored, and malformed ones: a caller's mistake, which
// must neither reach another object nor cause a search.
func (k *objects) unknownRefs(n system.Getter) {
	malformed := slices.Concat(badRefs, k.Truths.Malformed)
	if !slices.Contains(k.Truths.Unknown, simple) {
		malformed = append(malformed, simple)
	}
	for how, get := range ask(n) {
		k.failsUnknown(how, get, system.ErrNotFound)
		end := k.soon(how + " of malformed refs")
		for _, ref := range malformed {
			k.fails(fmt.Sprintf("%s of malformed ref %.40q", how, ref), get(k.ctx(), ref), system.ErrBadRef,
				system.ErrNotFound)
		}
		end()
	}
}

func (k *objects) badReaders() {
	k.kit.badReaders(k.n.Put)
	if k.seeds() {
		k.kit.badReaders(k.seed)
	}
	k.want(k.put("after-bad", 4)) // the server is not affected
}

// streams puts an object much larger than the permitted memory.
func (k *objects) streams() {
	size := k.size(48*mib, 16*mib)
	for how, by := range map[string]put{"put": k.n.Put, "seed": k.seed} {
		if how == "seed" && !k.seeds() {
			continue
		}
		name := "large-" + how
		r := Content(name, size)
		if !k.Truths.InProcess {
			r = io.MultiReader(io.LimitReader(r, size/4*3), k.holding(how, size), r)
		}
		ref, err := by(k.ctx(), name, size, r)
		k.must(how, err)
		want, got := crc32.NewIEEE(), crc32.NewIEEE()
		_, err = io.Copy(want, Content(name, size))
		k.must("generate", err)
		k.must("get", k.n.Get(k.ctx(), ref, io.MultiWriter(got, k.holding("get", size))))
		if want.Sum32() != got.Sum32() {
			k.Errorf("get: other bytes than those put")
		}
	}
}

// holding checks, after three quarters of an object of size bytes, how much more memory this
// process uses than now: temporary allocations of a library are permitted, a buffered object is
// not.
func (k kit) holding(what string, size int64) *hook {
	before := held()
	return &hook{after: int(size / 4 * 3), do: sync.OnceFunc(func() {
		if grew := held() - before; grew > size/4 {
			k.Errorf("%s of %d MiB holds %d MiB here after three quarters of it", what, size/mib, grew/mib)
		}
	})}
}

// held returns the memory in use without garbage: the minimum of several readings, since transfers
// continue to allocate after each collection.
func held() int64 {
	least := int64(math.MaxInt64)
	for range 3 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, int64(m.HeapAlloc))
	}
	return least
}

func (k *objects) cancel() {
	size := k.size(32*mib, 16*mib)
	ref := k.seeded("cancel", size)
	k.failsSoon("cancelled get", func() error {
		ctx, cancel := context.WithCancel(k.ctx())
		return k.n.Get(ctx, ref, &hook{after: mib, do: cancel})
	}, context.Canceled)
	k.failsSoon("cancelled put", func() error {
		ctx, cancel := context.WithCancel(k.ctx())
		// Endless for a reader that stops when cancelled, but limited for one that reads on, so
		// that it does not fill the memory.
		endless := io.MultiReader(Content("begin", 4*mib), &hook{do: cancel}, Content("endless", 252*mib),
			iotest.ErrReader(errReader))
		return errorOf(k.n.Put(ctx, "endless", 1<<32, endless))
	}, context.Canceled)
	k.failsSoon("put with a context that ended before", func() error {
		return errorOf(k.n.Put(ended(), "never", 5, Content("never", 5)))
	}, context.Canceled)
}

func (k *objects) concurrent() { k.beside(func(context.Context) error { return nil }) }

// beside puts and gets objects concurrently while other runs repeatedly.
func (k *objects) beside(other func(context.Context) error) {
	g, ctx := errgroup.WithContext(k.ctx())
	rounds := int(k.size(5, 2))
	g.Go(func() error {
		for range rounds {
			if err := other(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range k.size(8, 4) {
		g.Go(func() error {
			for round := range rounds {
				name := fmt.Sprintf("%s-%d-%d", k.Name(), i, round)
				data := Bytes(name, 300<<10+i)
				ref, err := k.n.Put(ctx, name, int64(len(data)), bytes.NewReader(data))
				if err != nil {
					return err
				}
				var got bytes.Buffer
				if err := k.n.Get(ctx, ref, &got); err != nil {
					return err
				}
				if !bytes.Equal(got.Bytes(), data) {
					return fmt.Errorf("%s: got other bytes", name)
				}
			}
			return nil
		})
	}
	k.must("side by side", g.Wait())
}

func (k *objects) ranges() {
	k.wantRanges(k.n.(system.Ranger), k.put("ranges", 3*mib+7)) // several blocks of any system, the last one incomplete
}

func (k kit) wantRanges(r system.Ranger, o object) {
	size := int64(len(o.data))
	for _, c := range []struct {
		what   string
		off, n int64
		short  bool
	}{
		{"first byte", 0, 1, false},
		{"first", 0, 1000, false},
		{"middle", size/2 - 3, size / 4, false},
		{"last", size - 1000, 1000, false},
		{"last byte", size - 1, 1, false},
		{"all", 0, size, false},
		{"nothing", size / 2, 0, false},
		{"over the end", size - 10, 100, true},
		{"at the end", size, 1, true},
		{"behind the end", size + mib, 10, true},
	} {
		k.wantContent("range "+c.what, o.data[min(c.off, size):min(c.off+c.n, size)], func(w io.Writer) error {
			err := r.GetRange(k.ctx(), o.ref, c.off, c.n, w)
			if c.short && errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			} else if c.short {
				return fmt.Errorf("%w, want an unexpected EOF", err)
			}
			return err
		})
	}
	k.fails("range with a negative offset", r.GetRange(k.ctx(), o.ref, -1, 10, io.Discard))
}

// listing returns the objects that the node lists, by ref; nil: it has no list.
func (k kit) listing(n system.Node) map[system.Ref]system.Object {
	l, ok := n.(system.Lister)
	if !ok {
		return nil
	}
	of := map[system.Ref]system.Object{}
	k.must("list", l.List(k.ctx(), func(o system.Object) error {
		if _, twice := of[o.Ref]; twice {
			k.Errorf("%s is listed twice", o.Ref)
		}
		of[o.Ref] = o
		return nil
	}))
	return of
}

func (k *objects) list() {
	ref := k.put("listed", 1234).ref
	o, ok := k.listing(k.n)[ref]
	if !ok || o.Size != 1234 || o.Name != "listed" && !k.Truths.ContentAddressed {
		k.Errorf("listed (%v) as %+v", ok, o)
	}
}

// delete deletes one of two objects that begin with the same blocks, since systems have been seen
// to delete the blocks of both.
func (k *objects) delete() {
	twin := Bytes("twin", 2*mib)
	gone := []object{k.put("deleted", 7), k.store(k.n.Put, "twin-1", twin)}
	second := k.store(k.n.Put, "twin-2", append(twin[:mib:mib], "other"...))
	for _, o := range gone {
		k.must("delete", k.n.(system.Deleter).Delete(k.ctx(), o.ref))
		for how, get := range ask(k.n) {
			k.fails(how+" after delete", get(k.ctx(), o.ref), system.ErrNotFound)
		}
	}
	if !k.Truths.DeleteTakesShared {
		k.want(second)
	}
}

func (k *objects) stat() {
	for _, size := range []int64{max(1, k.Truths.MinSize), 40, 1000, 2*mib + 1} {
		ref := k.put(fmt.Sprintf("stat-%d", size), size).ref
		o, err := k.n.(system.Stater).Stat(k.ctx(), ref)
		if err != nil || o.Size != size || o.Ref != ref {
			k.Errorf("stat of %s of %d bytes: %+v, %v", ref, size, o, err)
		}
	}
}

// attached tests systems that read existing objects.
func (k *objects) attached(kill func()) {
	n := k.c.Nodes()[0].(system.Getter)
	found, err := system.Found(k.ctx(), n)
	if err != nil || len(found) == 0 {
		k.Fatalf("objects %v, error %v", found, err)
	}
	for _, o := range found {
		k.Run("object "+string(o.Ref), func(t *testing.T) { kit{t}.wantProvided(n, o) })
	}
	k.unknownRefs(n)
	if _, monitored := n.(system.Monitored); monitored {
		k.monitor(n)
	}
	if k.n != nil {
		k.fails("put", errorOf(k.n.Put(k.ctx(), "x", 1, Content("x", 1))), system.ErrReadOnly)
	}
	k.fails("get with a context that ended before", n.Get(ended(), found[0].Ref, io.Discard), context.Canceled)
	k.must("health", n.(system.Healther).Health(k.ctx()))
	kill()
	k.wantGone(n, found[0].Ref)
}

// wantProvided checks that a node's description of an object matches its content.
func (k kit) wantProvided(n system.Getter, o system.Object) {
	var all bytes.Buffer
	k.must("get", n.Get(k.ctx(), o.Ref, &all))
	got := all.Bytes()
	if o.Size >= 0 && int64(len(got)) != o.Size {
		k.Errorf("%d bytes, said to be %d", len(got), o.Size)
	}
	payload := got[:cmp.Or(o.Payload, int64(len(got)))]
	if sum := sha256.Sum256(payload); o.SHA256 != "" && o.SHA256 != hex.EncodeToString(sum[:]) {
		k.Errorf("not the content that its sha256 says")
	}
	if r, ok := n.(system.Ranger); ok && !o.NoRange && len(got) > 2000 {
		k.wantRanges(r, object{o.Ref, got})
	}
	target, err := n.(system.HTTPServer).Target(o.Ref)
	k.must("target", err)
	if body := Fetch(k.T, target); !bytes.Equal(body, got) {
		k.Errorf("GET %s: %d bytes that differ from the %d of a get", target.URL, len(body), len(got))
	}
}
