package siasim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// object is a JSON object.
type object = map[string]any

// Siad returns the part of siad's API that the adapter uses. As with siad, reports need no
// password. Reports without simulated content are empty.
func (s *Sim) Siad() http.Handler {
	mux := http.NewServeMux()
	for path, report := range map[string]func() any{
		"/consensus":          func() any { return object{"synced": true, "height": height + int64(s.now/blockTime)} },
		"/daemon/version":     func() any { return object{"version": "1.5.9"} },
		"/gateway":            func() any { return object{} },
		"/hostdb/active":      func() any { return object{"hosts": make([]object, s.conf.Hosts)} },
		"/wallet":             s.siadWallet,
		"/renter":             func() any { return object{"settings": object{"allowance": object{"period": period}}} },
		"/renter/contracts":   s.siadContracts,
		"/renter/prices":      func() any { return object{} },
		"/renter/uploadready": s.ready,
		"/renter/files":       s.siadFiles,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			defer s.lock()()
			siadAnswer(w, http.StatusOK, report())
		})
	}
	s.file(mux, "GET /renter/file/{path...}", func(w http.ResponseWriter, _ *http.Request, f *file) {
		siadAnswer(w, http.StatusOK, object{"file": s.siadFile(f)})
	})
	s.file(mux, "POST /renter/delete/{path...}", func(w http.ResponseWriter, r *http.Request, f *file) {
		s.remove(f)
		w.WriteHeader(http.StatusNoContent)
	})
	s.file(mux, "POST /renter/rename/{path...}", func(w http.ResponseWriter, r *http.Request, f *file) {
		delete(s.files, f.path)
		f.path = r.FormValue("newsiapath")
		s.files[f.path] = f
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /renter/dir/{path...}", func(w http.ResponseWriter, r *http.Request) {
		defer s.lock()()
		for path, f := range s.files {
			if strings.HasPrefix(path, r.PathValue("path")+"/") && r.FormValue("action") == "delete" {
				s.remove(f)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /renter/download/{path...}", s.download)
	mux.HandleFunc("POST /renter/uploadstream/{path...}", s.uploadstream)
	return s.outer(mux)
}

// outer handles what all requests have in common: latency, faults and the password.
func (s *Sim) outer(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !timing.Pause(r.Context(), latency) {
			return
		}
		unlock := s.lock()
		down, html := s.has(s.conf.Faults.Down), s.has(s.conf.Faults.HTML)
		unlock()
		_, password, _ := r.BasicAuth()
		secret := r.Method == http.MethodPost || strings.HasPrefix(r.URL.Path, "/renter/download/")
		switch {
		case down:
			panic(http.ErrAbortHandler) // a connection from before the restart
		case html:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<!DOCTYPE html>\n<title>Maintenance</title><h1>We'll be back soon</h1>\n")
		case secret && password != Password:
			siadError(w, http.StatusUnauthorized, "API authentication failed.")
		default:
			inner.ServeHTTP(w, r)
		}
	})
}

// file serves a route whose path names a file.
func (s *Sim) file(mux *http.ServeMux, route string, serve func(http.ResponseWriter, *http.Request, *file)) {
	mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
		defer s.lock()()
		f := s.files[r.PathValue("path")]
		if f == nil {
			siadError(w, http.StatusBadRequest,
				"[unable to get the fileinfo from the filesystem; path does not exist]")
			return
		}
		serve(w, r, f)
	})
}

func siadAnswer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func siadError(w http.ResponseWriter, status int, message string) {
	siadAnswer(w, status, object{"message": message})
}

func (s *Sim) siadWallet() any {
	return object{"unlocked": true, "confirmedsiacoinbalance": s.wallet.String(),
		"unconfirmedoutgoingsiacoins": "0", "unconfirmedincomingsiacoins": "0"}
}

func (s *Sim) siadContracts() any {
	var all []object
	for i, c := range s.contracts {
		one := object{"id": c.id, "size": c.size, "totalcost": c.total().String(),
			"goodforupload": !s.has(s.conf.Faults.Full)}
		for name, amount := range c.money {
			one[name] = amount.String()
		}
		if i == 0 && s.has(s.conf.Faults.Underflow) {
			one["size"], one[funds] = math.MaxUint64-uint64(c.size), "-1"
		}
		all = append(all, one)
	}
	return object{"activecontracts": all}
}

// good returns how many contracts accept sectors.
func (s *Sim) good() int {
	if s.has(s.conf.Faults.Full) {
		return 0
	}
	return len(s.contracts)
}

func (s *Sim) ready() any {
	need := s.conf.Data + s.conf.Parity
	return object{
		"ready": s.good() >= need, "contractsneeded": need, "numactivecontracts": s.good(),
		"datapieces": s.conf.Data, "paritypieces": s.conf.Parity,
	}
}

func (s *Sim) siadFiles() any {
	var all []object // null if there are none
	for _, f := range s.files {
		all = append(all, s.siadFile(f))
	}
	slices.SortFunc(all, func(a, b object) int { return strings.Compare(a["siapath"].(string), b["siapath"].(string)) })
	if len(all) > 0 && s.has(s.conf.Faults.Underflow) {
		all[0]["uploadedbytes"] = uint64(math.MaxUint64)
	}
	return object{"files": all}
}

func (s *Sim) siadFile(f *file) object {
	progress := 100.0
	switch {
	case f.incomplete:
		progress = 0
	case f.chunks > 0:
		progress = min(100, 100*float64(f.placed)/float64(f.chunks*f.full))
	}
	redundancy := f.redundancy()
	pieces := min(redundancy*float64(f.data), float64(f.full))
	return object{
		"siapath": f.path, "filesize": f.size, "uploadedbytes": int64(f.placed) * s.conf.Sector,
		"uploadprogress": progress,
		"redundancy":     redundancy, "available": redundancy >= 1,
		"health": 1 - (pieces-float64(f.data))/float64(f.full-f.data),
	}
}

// uploadstream stores the body, and answers when every chunk can be rebuilt.
func (s *Sim) uploadstream(w http.ResponseWriter, r *http.Request) {
	f := s.receive(r.PathValue("path"), r.Body)
	unlock := s.lock()
	refused, taken := "", false
	switch need := s.conf.Data + s.conf.Parity/2; {
	case s.files[f.path] != nil:
		refused = "could not create a new sia file; a file or folder already exists at the specified path"
	case s.good() < need:
		refused = fmt.Sprintf("unable to stream an upload from a reader; not enough contracts to upload file: got "+
			"%d, needed %d", s.good(), need)
	case f.incomplete: // the partial file remains, and is not uploaded
		s.add(f)
		refused = "unable to stream an upload from a reader; unexpected EOF"
	case !s.has(s.conf.Faults.Swallow):
		s.add(f)
		taken = true
	}
	unlock()
	if taken && !s.accepted(r.Context(), f) {
		refused = "unable to stream an upload from a reader; file was deleted"
	}
	if refused != "" {
		siadError(w, http.StatusInternalServerError, "upload failed: ["+refused+"]")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// download answers with the content or with an error.
func (s *Sim) download(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	unlock := s.lock()
	f := s.files[r.PathValue("path")]
	why := ""
	switch {
	case q.Get("httpresp") != "true":
		why = "destination not supplied"
	case f == nil:
		why = "path does not exist"
	case f.redundancy() < 1:
		why = "not enough workers to complete download"
	}
	unlock()
	if why != "" {
		siadError(w, http.StatusInternalServerError, "download creation failed: "+why)
		return
	}
	off, _ := strconv.ParseInt(q.Get("offset"), 10, 64)
	length, err := strconv.ParseInt(q.Get("length"), 10, 64)
	if err != nil {
		length = f.size - off
	}
	s.send(w, f, off, length)
}

// address is the simulator's address for Host.
const address = "198.51.100.1:9980"

// URL returns the value of option `url`.
func (s *Sim) URL() string { return "http://" + address }

// Host returns the client's host. Its Dial reaches only the simulator.
func (s *Sim) Host() testbed.Host { return client{sim: s} }

// pipes is a listener for connections in memory.
//
// The connections are those of net.Pipe, which have no buffers. net/http works with them, because
// both ends read and write a connection in different goroutines. They only wait on channels, so
// that a bubble's clock can advance.
type pipes struct {
	net.Listener // nil: a server calls only the methods below
	conns        chan net.Conn
	ended        chan struct{}
}

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p pipes) Close() error {
	close(p.ended)
	return nil
}

// client is the host that requests come from. It can only dial.
type client struct {
	testbed.Host
	sim *Sim
}

func (client) Name() string     { return "client" }
func (client) Addr() netip.Addr { return netip.MustParseAddr("198.51.100.2") }

// Dial connects to the simulator.
func (c client) Dial(ctx context.Context, network, to string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unlock := c.sim.lock()
	down := c.sim.has(c.sim.conf.Faults.Down)
	unlock()
	if down || to != address {
		return nil, refused
	}
	ours, theirs := net.Pipe()
	select {
	case c.sim.pipes.conns <- theirs:
		return ours, nil
	case <-c.sim.pipes.ended:
		return nil, refused
	case <-ctx.Done():
		return nil, fmt.Errorf("dial %s: %w", to, context.Cause(ctx))
	}
}
