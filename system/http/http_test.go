package http

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

// server serves size bytes at all paths without "no-such".
func server(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "no-such") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Server", "test/1")
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

func TestConformance(t *testing.T) {
	data := systemtest.Bytes("http", 300_000)
	sum := sha256.Sum256(data)
	suites := map[string]func(t *testing.T) (system.Options, func()){
		"urls": func(t *testing.T) (system.Options, func()) {
			s := httptest.NewServer(server(data))
			t.Cleanup(s.Close)
			return system.Options{"urls": s.URL + "/a\n" + s.URL + "/b?c=d%20e"}, s.Close
		},
		"list": func(t *testing.T) (system.Options, func()) {
			s := httptest.NewServer(server(data))
			t.Cleanup(s.Close)
			list := filepath.Join(t.TempDir(), "list")
			text := fmt.Sprintf("%s/a %d %s\n%s/b\n", s.URL, len(data), hex.EncodeToString(sum[:]), s.URL)
			must(t, os.WriteFile(list, []byte(text), 0o600))
			return system.Options{"list": list}, s.Close
		},
		"name to be resolved": func(t *testing.T) (system.Options, func()) {
			s := httptest.NewServer(server(data))
			t.Cleanup(s.Close)
			return system.Options{"urls": strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/a"}, s.Close
		},
		"secret header": func(t *testing.T) (system.Options, func()) {
			t.Setenv("PLIMSOLL_TEST_HEADERS", "Authorization: Bearer x\nX-Other: y\n")
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer x" {
					http.Error(w, "who are you?", http.StatusForbidden)
					return
				}
				server(data)(w, r)
			}))
			t.Cleanup(s.Close)
			return system.Options{"urls": s.URL + "/a", "headers": "PLIMSOLL_TEST_HEADERS"}, s.Close
		},
		"own root certificate": func(t *testing.T) (system.Options, func()) {
			s := httptest.NewTLSServer(server(data))
			t.Cleanup(s.Close)
			ca := filepath.Join(t.TempDir(), "ca.pem")
			block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
			must(t, os.WriteFile(ca, block, 0o600))
			return system.Options{"urls": s.URL + "/a", "ca": ca}, s.Close
		},
		"neither HEAD nor ranges": func(t *testing.T) (system.Options, func()) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				w.Header().Set("Content-Length", fmt.Sprint(len(data)))
				w.Write(data)
			}))
			t.Cleanup(s.Close)
			return system.Options{"urls": s.URL + "/a"}, s.Close
		},
	}
	for name, attach := range suites {
		t.Run(name, func(t *testing.T) {
			systemtest.Run(t, systemtest.Suite{System: System{}, Attach: attach})
		})
	}
}

func TestServerWithoutRanges(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Accept-Ranges", "bytes") // a false claim
		io.WriteString(w, "0123456789")
	}))
	defer s.Close()
	n := attach(t, system.Options{"urls": s.URL + "/a"})
	objects, err := n.(system.Provider).Objects(t.Context())
	if err != nil || len(objects) != 1 || !objects[0].NoRange || objects[0].Size != 10 {
		t.Errorf("objects %+v, %v", objects, err)
	}
	var got bytes.Buffer
	err = n.(system.Ranger).GetRange(t.Context(), objects[0].Ref, 2, 3, &got)
	if !errors.Is(err, system.ErrNoRange) || got.Len() != 0 {
		t.Errorf("range: %v, %q", err, &got)
	}
}

func TestLyingServers(t *testing.T) {
	hijack := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "" || r.Header.Get("Range") == "bytes=0-0" {
				server([]byte("0123456789"))(w, r)
				return
			}
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			io.WriteString(c, answer)
			c.Close()
		}
	}
	for name, c := range map[string]struct {
		answer string
		want   string
	}{
		"other range": {"HTTP/1.1 206 OK\r\nContent-Length: 3\r\nContent-Range: bytes 1-3/10\r\n\r\nabc",
			"Content-Range"},
		"no range": {"HTTP/1.1 206 OK\r\nContent-Length: 3\r\n\r\nabc", "Content-Range"},
		"longer range": {"HTTP/1.1 206 OK\r\nContent-Length: 5\r\nContent-Range: bytes 2-6/10\r\n\r\nabcde",
			"Content-Range"},
		"contradiction": {"HTTP/1.1 206 OK\r\nContent-Length: 2\r\nContent-Range: bytes 2-4/10\r\n\r\nab",
			"contradicts"},
		"truncated": {"HTTP/1.1 206 OK\r\nContent-Length: 3\r\nContent-Range: bytes 2-4/10\r\n\r\na",
			"unexpected EOF"},
		"redirect": {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
			"connection refused"},
		"closes at once": {"", "EOF"},
		"error":          {"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\noops", "status 500: oops"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(hijack(c.answer))
			defer s.Close()
			n := attach(t, system.Options{"urls": s.URL + "/a"})
			err := n.(system.Ranger).GetRange(t.Context(), system.Ref(s.URL+"/a"), 2, 3, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	s := httptest.NewServer(server([]byte("0123456789")))
	defer s.Close()
	dir := t.TempDir()
	list := filepath.Join(dir, "list")
	must(t, os.WriteFile(list, []byte(s.URL+"/a 11\n"), 0o600))
	secret := filepath.Join(dir, "secret")
	must(t, os.WriteFile(secret, []byte(strings.Replace(s.URL, "http://", "http://user:hunter2@", 1)+"/a\n"),
		0o600))
	t.Setenv("PLIMSOLL_TEST_BAD", "hunter2")
	for want, opt := range map[string]system.Options{
		"give URLs":            {},
		"not an absolute":      {"urls": "/a"},
		"not an absolute http": {"urls": "ftp://h/a"},
		"variable PLIMSOLL_TEST_UNSET is not set": {"urls": s.URL, "headers": "PLIMSOLL_TEST_UNSET"},
		"has a line that is not":                  {"urls": s.URL, "headers": "PLIMSOLL_TEST_BAD"},
		"no such file":                            {"list": filepath.Join(dir, "none")},
		"root certificate":                        {"urls": s.URL, "ca": filepath.Join(dir, "none")},
		"unknown option \"url\"":                  {"url": s.URL},
		"has 10 bytes, the list says 11":          {"list": list},
		"option \"headers\"":                      {"list": secret},
		"cannot be read":                          {"urls": "http://user:hunter2%zz@h/"},
		"connection refused":                      {"urls": "http://127.0.0.1:1/a"},
	} {
		_, err := systemtest.Attach(t, System{}, opt, false)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("options %v: error %v, want one with %q", opt, err, want)
		}
	}
}

func attach(t *testing.T, opt system.Options) system.Node {
	t.Helper()
	c, err := systemtest.Attach(t, System{}, opt, false)
	must(t, err)
	return c.Nodes()[0]
}
