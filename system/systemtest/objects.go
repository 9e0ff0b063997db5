package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
)

// sizes: around those of blocks and of literals in refs.
func (k *objects) sizes() {
	for _, size := range []int64{0, 1, 55, 56, 1 << 10, 256<<10 - 1, 256 << 10, 256<<10 + 1, 5 * mib} {
		name := fmt.Sprintf("size-%d", size)
		if size < k.Truths.MinSize {
			_, err := k.n.Put(Context(k.T), name, size, Content(name, size))
			fails(k.T, "put of less than the system takes", err)
			continue
		}
		k.want(k.put(name, Bytes(name, size)), Bytes(name, size))
		k.want(k.seeded("seed"+name, size), Bytes("seed"+name, size))
	}
}

func (k *objects) names() {
	data := map[system.Ref][]byte{}
	for _, name := range []string{
		"", " ", ".", "..", ".hidden", "../../up", "a/b/c", "a//b", "a b", "a%20b", "a+b", "a?b#c&d=e", "ünï→☃",
		"x\x00y",
		"new\nline", `back\slash`, `"quoted"`, "-rf", "CON:|*<>", "con", "aux.txt", "dot.", "dots..txt",
		"\xff\xfe", "=41", "A", strings.Repeat("long", 100),
		strings.Repeat("long", 101),
	} {
		b := Bytes("name"+name, 100)
		ref := k.put(name, b)
		if data[ref] != nil {
			k.Errorf("name %q and another share the ref %s", name, ref)
		}
		data[ref] = b
	}
	for ref, b := range data {
		k.want(ref, b)
	}
	same := Bytes("same content", 300)
	one, two := k.put("same-1", same), k.put("same-2", same)
	if (one == two) != k.Truths.ContentAddressed {
		k.Errorf("the same content has refs %s and %s; content addressed: %v", one, two, k.Truths.ContentAddressed)
	}
	k.want(one, same)
	k.want(two, same)
}

// ask is each way to ask for an object that n has and that changes nothing.
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
		ways["stat"] = func(ctx context.Context, ref system.Ref) error { _, err := s.Stat(ctx, ref); return err }
	}
	return ways
}

// unknownRefs asks for what was never stored, and for what cannot be: a caller's
// mistake, which must neither reach another object nor be searched for.
func (k *objects) unknownRefs(n system.Getter) {
	malformed := append(append([]system.Ref{}, badRefs...), k.Truths.Malformed...)
	if k.Truths.Unknown != nil {
		malformed = append(malformed, "no-such-object")
	}
	for how, get := range ask(n) {
		for _, ref := range k.unknown() {
			failsSoon(k.T, how+" of an unknown ref", func() error { return get(Context(k.T), ref) }, system.ErrNotFound)
		}
		within(k.T, how+" of malformed refs", func() {
			for _, ref := range malformed {
				fails(k.T, fmt.Sprintf("%s of malformed ref %.40q", how, ref), get(Context(k.T), ref), system.ErrBadRef,
					system.ErrNotFound)
			}
		})
	}
}

func (k *objects) badReaders() {
	badReaders(k.T, k.n.Put)
	badReaders(k.T, k.seed)
	k.want(k.put("after-bad", []byte("fine")), []byte("fine")) // the server is none the worse for it
}

// streams puts an object much larger than what may be held in memory.
func (k *objects) streams() {
	size := k.size(48*mib, 16*mib)
	for how, put := range map[string]store{"put": k.n.Put, "seed": k.seed} {
		name := "large-" + how
		r := Content(name, size)
		if !k.Truths.InProcess {
			r = holding(k.T, how, size, r)
		}
		ref, err := put(Context(k.T), name, size, r)
		must(k.T, how, err)
		pipe, w := io.Pipe()
		go func() { w.CloseWithError(k.n.Get(Context(k.T), ref, w)) }()
		got, want := checksum(k.T, holding(k.T, "get", size, pipe)), checksum(k.T, Content(name, size))
		if got != want {
			k.Errorf("get: other bytes than those put")
		}
	}
}

func checksum(t *testing.T, r io.Reader) uint64 {
	t.Helper()
	h := crc64.New(crc64.MakeTable(crc64.ECMA))
	_, err := io.Copy(h, r)
	must(t, "read", err)
	return h.Sum64()
}

// holding is r, an object of size bytes on its way, and looks after three
// quarters of it at what this process holds in memory: what a library allocates
// for a moment is its cost, but no buffered object.
func holding(t *testing.T, what string, size int64, r io.Reader) io.Reader {
	before := held()
	return io.MultiReader(io.LimitReader(r, size/4*3), &once{do: func() {
		if grew := held() - before; grew > size/4 {
			t.Errorf("%s of %d MiB holds %d MiB here after three quarters of it", what, size/mib, grew/mib)
		}
	}}, r)
}

// held is the memory in use, garbage left out: the least of a few looks, since
// what is on its way goes on being allocated after each collection.
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
	failsSoon(k.T, "cancelled get", func() error {
		ctx, cancel := context.WithCancel(Context(k.T))
		return k.n.Get(ctx, ref, &cancelAfter{left: mib, cancel: cancel})
	}, context.Canceled)
	failsSoon(k.T, "cancelled put", func() error {
		ctx, cancel := context.WithCancel(Context(k.T))
		// Endless for who stops when cancelled; who reads on does not fill the memory.
		endless := io.MultiReader(io.TeeReader(Content("endless", 256*mib), &cancelAfter{left: 4 * mib,
			cancel: cancel}), brokenReader{})
		_, err := k.n.Put(ctx, "endless", 1<<32, endless)
		return err
	}, context.Canceled)
	failsSoon(k.T, "put with a context that ended before", func() error {
		_, err := k.n.Put(ended(), "never", 5, Content("never", 5))
		return err
	}, context.Canceled)
}

// cancelAfter is a writer which cancels after some bytes.
type cancelAfter struct {
	left   int64
	cancel func()
}

func (c *cancelAfter) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		c.cancel()
	}
	return len(p), nil
}

func (k *objects) concurrent() { k.beside(func(context.Context) error { return nil }) }

// beside puts and gets objects from several sides while other runs again and again.
func (k *objects) beside(other func(context.Context) error) {
	g, ctx := errgroup.WithContext(Context(k.T))
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
	if err := g.Wait(); err != nil {
		k.Error(err)
	}
}

func (k *objects) ranges() {
	const size = 3*mib + 7 // several blocks of any system, the last one not full
	data := Bytes("ranges", size)
	wantRanges(k.T, k.n.(system.Ranger), k.put("ranges", data), data)
}

func wantRanges(t *testing.T, r system.Ranger, ref system.Ref, data []byte) {
	t.Helper()
	size := int64(len(data))
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
		wantContent(t, "range "+c.what, data[min(c.off, size):min(c.off+c.n, size)], func(w io.Writer) error {
			err := r.GetRange(Context(t), ref, c.off, c.n, w)
			if c.short && errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			} else if c.short {
				return fmt.Errorf("%w, want an unexpected EOF", err)
			}
			return err
		})
	}
	fails(t, "range with a negative offset", r.GetRange(Context(t), ref, -1, 10, io.Discard))
}

// listing is what the node lists, by ref; nil: it has no list.
func listing(t *testing.T, n system.Node) map[system.Ref]system.Object {
	t.Helper()
	l, ok := n.(system.Lister)
	if !ok {
		return nil
	}
	all, err := system.All(Context(t), l)
	must(t, "list", err)
	of := map[system.Ref]system.Object{}
	for _, o := range all {
		if _, twice := of[o.Ref]; twice {
			t.Errorf("%s is listed twice", o.Ref)
		}
		of[o.Ref] = o
	}
	return of
}

func (k *objects) list() {
	ref := k.put("listed", Bytes("listed", 1234))
	o, ok := listing(k.T, k.n)[ref]
	if !ok || o.Size != 1234 || o.Name != "listed" && !k.Truths.ContentAddressed {
		k.Errorf("listed (%v) as %+v", ok, o)
	}
}

// delete: two objects have the same blocks at their start, as systems have been
// seen to delete those of both.
func (k *objects) delete() {
	twin := Bytes("twin", 2*mib)
	other := append(twin[:mib:mib], "other"...)
	refs := []system.Ref{k.put("deleted", []byte("deleted")), k.put("twin-1", twin)}
	second := k.put("twin-2", other)
	for _, ref := range refs {
		must(k.T, "delete", k.n.(system.Deleter).Delete(Context(k.T), ref))
		fails(k.T, "get after delete", k.n.Get(Context(k.T), ref, io.Discard), system.ErrNotFound)
		if s, ok := k.n.(system.Stater); ok {
			_, err := s.Stat(Context(k.T), ref)
			fails(k.T, "stat after delete", err, system.ErrNotFound)
		}
	}
	if !k.Truths.DeleteTakesShared {
		k.want(second, other)
	}
}

func (k *objects) stat() {
	for _, size := range []int64{max(1, k.Truths.MinSize), 40, 1000, 2*mib + 1} {
		name := fmt.Sprintf("stat-%d", size)
		ref := k.put(name, Bytes(name, size))
		o, err := k.n.(system.Stater).Stat(Context(k.T), ref)
		if err != nil || o.Size != size || o.Ref != ref {
			k.Errorf("stat of %s of %d bytes: %+v, %v", ref, size, o, err)
		}
	}
}
