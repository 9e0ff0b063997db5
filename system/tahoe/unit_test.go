package tahoe

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

func TestConfig(t *testing.T) {
	fill := func(opt system.Options) system.Options {
		full, err := System{}.Info().Fill(opt)
		must(t, err)
		return full
	}
	c, err := parseConfig(fill(nil))
	if err != nil || c != (config{nodes: 3, needed: 2, happy: 3, total: 3, protocol: "gbs"}) {
		t.Errorf("default: %+v, %v", c, err)
	}
	if c, err = parseConfig(fill(system.Options{"nodes": "2", "total": "4"})); err != nil || c.happy != 2 {
		t.Errorf("4 shares on 2 nodes: %+v, %v", c, err)
	}
	for want, opt := range map[string]system.Options{
		"4 shares are needed": {"needed": "4"},
		"cannot reach 4 of 5": {"happy": "4", "nodes": "5"},
		"cannot reach 3 of 2": {"happy": "3", "nodes": "2"},
	} {
		if _, err := parseConfig(fill(opt)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", opt, err, want)
		}
		if p := system.Check(t.Context(), System{}, opt); len(p) != 1 || !strings.Contains(p[0].What, want) {
			t.Errorf("check of %v: %v", opt, p)
		}
	}
}

func TestCaps(t *testing.T) {
	const a, b = "aaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for ref, want := range map[system.Ref]capability{
		"URI:CHK:" + a + ":" + b + ":2:3:1000":       {"CHK", 1000, 2},
		"URI:LIT:":                                   {"LIT", 0, 0},
		"URI:LIT:krugkidrovuwg2zamjzg653oebtg66a":    {"LIT", 19, 0}, // "The quick brown fox"
		"URI:SSK:" + a + ":" + b:                     {"SSK", -1, 0},
		"URI:MDMF:" + a + ":" + b + ":3:131073":      {"MDMF", -1, 0},
		"URI:DIR2-MDMF-RO:" + a + ":" + b:            {"DIR2-MDMF-RO", -1, 0},
		"URI:CHK:" + a + ":" + b + ":2:3:9999999999": {"CHK", 9999999999, 2},
	} {
		if got, err := parseCap(ref); err != nil || got != want {
			t.Errorf("%s: %+v, %v", ref, got, err)
		}
	}
	for _, bad := range []system.Ref{"", "URI:", "URI:LIT:a", "uri:CHK:" + a + ":" + b + ":2:3:1", "URI:CHK:" + a +
		":" + b + ":2:3:x",
		"URI:CHK:" + a + ":" + b + ":2:3:99999999999999999999", "URI:SSK:" + a, "URI:SSK:" + a + ":" + b + "/x",
		" URI:LIT:"} {
		if _, err := parseCap(bad); !errors.Is(err, system.ErrBadRef) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestAccounts parses pages of a client of version 1.20.0.
func TestAccounts(t *testing.T) {
	read := func(file string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		must(t, err)
		return b
	}
	type phase struct {
		name string
		took time.Duration
	}
	want := func(what, kind string, page []byte, want ...phase) {
		t.Helper()
		got, err := pagePhases(kind, page)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %v, %v", what, got, err)
		}
		for i, p := range got {
			if p.Name != what+": "+want[i].name || (p.Took-want[i].took).Abs() > time.Microsecond {
				t.Errorf("%s: %v, want %v", what, p, want[i])
			}
		}
	}
	const ms, us = time.Millisecond, time.Microsecond
	want("upload", upload, read("up.html"), phase{"Total", 223 * ms}, phase{"Storage Index", 6800 * us},
		phase{"Peer Selection", 44 * ms}, phase{"Encode And Push", 172 * ms}, phase{"Cumulative Encoding", 37 * ms},
		phase{"Cumulative Pushing", 98 * ms}, phase{"Send Hashes And Close", 36 * ms})
	want("publish", publish, read("publish-0.html"), phase{"Total", 128927 * us}, phase{"Setup", 861 * us},
		phase{"Encrypting", 3254 * us}, phase{"Encoding", 4612 * us}, phase{"Packing Shares", 14184 * us},
		phase{"RSA Signature", 1989 * us}, phase{"Pushing", 117342 * us})
	want("mapupdate", mapupdate, read("mapupdate-0.html"), phase{"Total", 90 * ms}, phase{"Initial Queries", 15 * ms},
		phase{"Cumulative Verify", 0})
	want("retrieve", retrieve, read("retrieve-0.html"), phase{"Total", 58807 * us}, phase{"Fetching", 58806 * us},
		phase{"Decoding", 14096 * us}, phase{"Decrypting", 21319 * us})
	for text, took := range map[string]time.Duration{"1.23s": 1230 * ms, "11 seconds": 11 * time.Second,
		"1 second": time.Second, "3 minutes": 3 * time.Minute, "132us": 132 * us, "9.5e-07": time.Microsecond} {
		want("upload", upload, []byte("Timings:<li>Total: "+text+"\n (x)</li>"), phase{"Total", took})
	}
	want("upload", upload, []byte("<li>Timings:</li><li>Total: \n()</li><li>Total: <span>None</span></li>"))

	// This download of 5 segments took about 0.5 s.
	got, err := downloadPhases(read("down.json"))
	must(t, err)
	took := map[string]time.Duration{}
	for _, p := range got {
		took[p.Name] = p.Took
	}
	total := took["download: read"]
	if total < 100*ms || total > time.Second || took["download: segments"] > total ||
		took["download: decode"] > took["download: segments"] ||
		took["download: decode"] <= 0 || took["download: decrypt"] <= 0 || took["download: DYHB requests"] <= 0 ||
		took["download: block requests"] <= 0 {
		t.Errorf("download: %v", got)
	}
	if _, err := downloadPhases([]byte("<html>")); err == nil {
		t.Error("a page instead of an account is no error")
	}
	if got, err := downloadPhases([]byte(`{"read": [{"start_time": 5.0, "finish_time": null}]}`)); err != nil ||
		got[0].Took != 0 {
		t.Errorf("a download that goes on: %v, %v", got, err)
	}
	if got := latestAccounts([]byte(`<a href="/status/up-9"><a href="/status/up-10"><a href="/status/down-0">`)); got[upload] != 10 || got[download] != 0 || got[publish] != -1 {
		t.Errorf("latest %v", got)
	}
}

// TestAnswers checks the mapping of observed answers of a client of version 1.20.0.
func TestAnswers(t *testing.T) {
	const none = "NoSharesError: no shares could be found. Zero shares usually indicates a corrupt URI.\n\nThe full " +
		"error message is:\nno shares (need 2). Last failure: None"
	unhappy := func(full string) string {
		return "Traceback (most recent call last):\nFailure: allmydata.interfaces.UploadUnhappinessError: shares " +
			"could be placed or found on only 2 server(s). " +
			"(placed 2 shares out of 3 total (1 homeless), 1 placed none (of which " + full +
			" placed none due to the server being full and 0 placed none due to an error))"
	}
	for _, c := range []struct {
		what   string
		status int
		text   string
		state  string // of the second storage node
		want   error
	}{
		{"too few shares", 410, "NotEnoughSharesError: This indicates that some servers were unavailable", "connected",
			system.ErrTooFew},
		{"no shares", 410, none, "connected", system.ErrNotFound},
		{"no shares, a node is away", 410, none, "failure: x", system.ErrTooFew},
		{"bad shares", 410, strings.Replace(none, "None", "[Failure instance: BadHashError]", 1), "connected",
			system.ErrTooFew},
		{"mutable", 410, "UnrecoverableFileError: the directory (or mutable file) could not be retrieved", "connected",
			system.ErrNotFound},
		{"unhappy", 500, unhappy("0"), "connected", system.ErrTooFew},
		{"full", 500, unhappy("1"), "connected", system.ErrQuota},
		{"traceback", 500, "Traceback\nValueError: x", "connected", nil},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				io.WriteString(w, `{"servers": [{"connection_status": "connected"}, {"connection_status": "`+c.state+`"}]}`)
				return
			}
			w.WriteHeader(c.status)
			io.WriteString(w, c.text)
		}))
		n := nodeAt(t, s.URL)
		err := n.Get(t.Context(), "URI:LIT:", io.Discard)
		wantKind(t, c.what, err, c.want, "tahoe: get: ")
		if full, both := errors.Is(err, system.ErrQuota), strings.Contains(fmt.Sprint(err),
			"cut off still holds the place, for up to 30 minutes"); full != both {
			t.Errorf("%s: %v", c.what, err)
		}
		s.Close()
	}
}

// TestNotACap checks that an answer of a foreign server is not taken for a cap.
func TestNotACap(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		io.WriteString(w, "<html>welcome")
	}))
	defer s.Close()
	n := nodeAt(t, s.URL)
	_, err := n.Put(t.Context(), "x", 1, strings.NewReader("x"))
	wantKind(t, "put", err, nil, "instead of a cap")
	wantKind(t, "health", n.Health(t.Context()), nil, "the answer is not what it should be")
}

func nodeAt(t *testing.T, address string) *node {
	t.Helper()
	base, err := url.Parse(address)
	must(t, err)
	n := &node{name: name, base: base, format: "SDMF"}
	n.client, err = web.New(name, (&net.Dialer{}).DialContext, n.at("/", ""))
	must(t, err)
	t.Cleanup(n.client.Close)
	return n
}
