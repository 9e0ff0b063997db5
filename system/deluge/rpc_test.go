package deluge

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/selfsigned"
)

// frames are the recorded answers, by what was asked.
func frames(t testing.TB) map[string][]byte {
	t.Helper()
	b, err := os.ReadFile("testdata/frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for line := range strings.Lines(string(b)) {
		what, digits, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || what == "#" {
			continue
		}
		if all[what], err = hex.DecodeString(digits); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestRecordedAnswers(t *testing.T) {
	all := frames(t)
	ints := []any{}
	for _, n := range []int64{0, 43, 44, 127, 128, -1, -32, -33, -128, -129, 32767, 32768, -32769, 1<<31 - 1, 1 << 31, -1<<31 - 1, math.MaxInt64, math.MinInt64} {
		ints = append(ints, n)
	}
	for _, c := range []struct {
		what string
		id   int64
		want any
	}{
		{"login", 2, int64(10)},
		{"version", 3, "2.2.0"},
		{"libtorrent", 4, "2.1.1.0"},
		{"status", 5, map[string]any{
			"have": int64(100_000), "seeding": true, "lt_state": "seeding", "state": "Seeding", "message": "OK",
			"received": int64(0), "sent": int64(0), "peers": int64(0),
		}},
		{"torrent-status", 6, map[string]any{
			"tracker": "", "state": "Seeding", "is_seed": true, "eta": int64(0), "progress": 100.0, "time_added": int64(0x6b020c3e),
			"ratio": 0.0, "total_done": int64(100_000), "pieces": nil,
			"files": []any{map[string]any{"index": int64(0), "path": "x", "size": int64(100_000), "offset": int64(0)}},
		}},
		{"made-ints", 12, ints},
	} {
		m, err := unpack(bytes.NewReader(all[c.what]))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		v, mine, err := answer(m, c.id)
		if !mine || err != nil || !reflect.DeepEqual(v, c.want) {
			t.Errorf("%s: %v, %v, want %v (mine: %v)", c.what, v, err, c.want, mine)
		}
		if _, mine, err := answer(m, c.id+1); mine || err != nil {
			t.Errorf("%s: taken for another's answer: %v, %v", c.what, mine, err)
		}
	}
	m, err := unpack(bytes.NewReader(all["made-forms"]))
	if err != nil {
		t.Fatal(err)
	}
	v := m.([]any)[2].(map[string]any)
	if v["ünï"] != "→☃" || v["f32"] != 1.5 || v["none"] != nil || v["long"] != strings.Repeat("x", 64) || len(v["list"].([]any)) != 70 || len(v["dict"].(map[string]any)) != 30 {
		t.Errorf("all forms: %v", v)
	}
}

func TestRecordedErrors(t *testing.T) {
	all := frames(t)
	for _, c := range []struct {
		what           string
		id             int64
		class, message string
	}{
		{"login-refused", 1, "BadLoginError", "Password does not match; plimsoll"},
		{"no-such-method", 7, "AttributeError", "RPC call on invalid function: core.no_such"},
		{"no-such-torrent", 8, "InvalidTorrentError", "torrent_id 0000000000000000000000000000000000000000 not in session."},
		{"no-such-status", 9, "KeyError", "'0000000000000000000000000000000000000000'"},
	} {
		m, err := unpack(bytes.NewReader(all[c.what]))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		_, mine, err := answer(m, c.id)
		var r *raised
		if !mine || !errors.As(err, &r) || r.class != c.class || r.message != c.message {
			t.Errorf("%s: %v (mine: %v), want %s: %s", c.what, err, mine, c.class, c.message)
		}
	}
}

func TestRecordedStatus(t *testing.T) {
	m, err := unpack(bytes.NewReader(frames(t)["status"]))
	if err != nil {
		t.Fatal(err)
	}
	v := m.([]any)[2].(map[string]any)
	if s, err := parseStatus(v); err != nil || !s.complete() || s.have != 100_000 {
		t.Errorf("%+v, %v", s, err)
	}
	for key, bad := range map[string]any{"have": int64(-1), "seeding": nil, "state": int64(1), "peers": "1", "lt_state": nil} {
		broken := map[string]any{}
		for k, e := range v {
			broken[k] = e
		}
		broken[key] = bad
		if s, err := parseStatus(broken); !errors.Is(err, system.ErrAnswer) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is %v: %+v, %v", key, bad, s, err)
		}
	}
	if _, err := parseStatus([]any{}); !errors.Is(err, system.ErrAnswer) {
		t.Errorf("a list for a status: %v", err)
	}
}

func TestMalformedRencode(t *testing.T) {
	for what, b := range map[string]string{
		"nothing": "", "two values": "\x01\x01", "a list that ends too early": "\xc2\x01", "an open list": "\x3b\x01", "an open dict": "<\x81a\x01",
		"text that ends too early": "\x85abc", "a length with no colon": "99999999999999", "a length that is no number": "1x:a", "a negative length": "-1:a",
		"a longer text than there is": "2000000000:a", "a number with no end": "=123", "a number of 70 bits": "=1180591620717411303424\x7f", "an empty number": "=\x7f",
		"a dict whose key is a number": "g\x01\x01", "a dict with a key twice": "h\x81a\x01\x81a\x02", "a dict without a value": "g\x81a", "an end alone": "\x7f",
		"a byte that begins nothing": "\x2d", "half an int64": "A\x01\x02", "deep lists": strings.Repeat("\xc1", 100_000), "deep dicts": strings.Repeat("g\x81a", 100),
	} {
		if v, err := decode([]byte(b)); !errors.Is(err, errEncoding) {
			t.Errorf("%s: %v, %v", what, v, err)
		}
	}
	if _, err := encode(nil, []any{map[string]any{"a": struct{}{}}}); err == nil {
		t.Error("a struct was encoded")
	}
}

func FuzzDecode(f *testing.F) {
	for _, frame := range frames(f) {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = unpack(bytes.NewReader(b))
		v, err := decode(b)
		if err != nil {
			return
		}
		again, err := encode(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		w, err := decode(again)
		if err != nil || !same(v, w) {
			t.Errorf("%v is %v after a round trip (%v)", v, w, err)
		}
	})
}

// same is reflect.DeepEqual, but for NaN.
func same(a, b any) bool {
	x, err := encode(nil, a)
	y, err2 := encode(nil, b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

func TestFramesWithinLimits(t *testing.T) {
	bomb, err := pack(strings.Repeat("x", maxInflated))
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{
		"another version": {2, 0, 0, 0, 0}, "a frame of 4 GB": {1, 255, 255, 255, 255}, "no zlib": {1, 0, 0, 0, 2, 'a', 'b'},
		"what inflates beyond all bounds": bomb, "half a zlib stream": append([]byte{1, 0, 0, 0, 5}, 0x78, 0x9c, 0x3b, 0xcc, 0xc8),
	} {
		if v, err := unpack(bytes.NewReader(b)); !errors.Is(err, errEncoding) {
			t.Errorf("%s: %v, %v", what, v, err)
		}
	}
	for what, b := range map[string][]byte{"half a head": {1, 0}, "half a frame": {1, 0, 0, 0, 9, 1}} {
		if _, err := unpack(bytes.NewReader(b)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, m := range []any{nil, "x", []any{}, []any{int64(1)}, []any{"1", int64(1)}, []any{int64(1), int64(1)}, []any{int64(2), int64(1), "x"}, []any{int64(7), int64(1), nil}} {
		if _, _, err := answer(m, 1); !errors.Is(err, errEncoding) {
			t.Errorf("message %v: %v", m, err)
		}
	}
}

// scripted is a server that reads a request and answers with the next frame; an
// empty one is silence.
func scripted(t *testing.T, answers ...[]byte) *client {
	t.Helper()
	addr := netip.MustParseAddr("127.0.0.1")
	files, err := selfsigned.Write(t.TempDir(), addr)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for len(answers) > 0 {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for len(answers) > 0 {
				if _, err := unpack(c); err != nil {
					break // hung up: the next connection goes on
				}
				next := answers[0]
				answers = answers[1:]
				if _, err := c.Write(next); err != nil {
					break
				}
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	k := newClient(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}, &tls.Config{InsecureSkipVerify: true}, "u", "p")
	t.Cleanup(k.Close)
	return k
}

func frame(t *testing.T, v any) []byte {
	t.Helper()
	b, err := pack(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestClient(t *testing.T) {
	login := frame(t, []any{int64(1), int64(1), int64(10)})
	ok := func(id int64) []byte { return frame(t, []any{int64(1), id, "yes"}) }
	event := frame(t, []any{int64(3), "TorrentAddedEvent", []any{"x"}})

	k := scripted(t, login, append(event, append(ok(1), ok(2)...)...), ok(3))
	for range 2 { // an event and a late answer come before ours
		if v, err := k.call(t.Context(), "a.b"); v != "yes" || err != nil {
			t.Errorf("call: %v, %v", v, err)
		}
	}

	k = scripted(t, login, []byte("not a frame"), frame(t, []any{int64(1), int64(3), int64(10)}), ok(4))
	if v, err := k.call(t.Context(), "a.b"); !errors.Is(err, errEncoding) {
		t.Errorf("garbage: %v, %v", v, err)
	}
	if v, err := k.call(t.Context(), "a.b"); v != "yes" || err != nil { // over a new connection
		t.Errorf("after garbage: %v, %v", v, err)
	}

	k = scripted(t, frame(t, []any{int64(1), int64(1), int64(0)}))
	if _, err := k.call(t.Context(), "a.b"); err == nil || !strings.Contains(err.Error(), "login") {
		t.Errorf("refused login: %v", err)
	}

	k = scripted(t, login, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := k.call(ctx, "a.b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silence: %v", err)
	}
	if _, err := k.call(ctx, "a.b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
}
