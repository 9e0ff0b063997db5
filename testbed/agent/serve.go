// Package agent provides hosts on other machines: an agent, `plimsoll node agent`, acts on
// the machine and in the network that it was started in, and a [Host] calls it by HTTP/2
// over mutual TLS. Each call has a deadline, and what a call opened ends with its request.
// An agent without calls from its engine for a while stops what it started, and itself.
package agent

import (
	"context"
	"crypto/tls"
	"encoding/gob"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// ServeNode is [testbed.ServeNode] plus the command `node agent`.
func ServeNode(ctx context.Context, args []string) (handled bool, err error) {
	if len(args) > 1 && args[0] == "node" && args[1] == "agent" {
		return true, Serve(ctx, args[2:], os.Stdin)
	}
	return testbed.ServeNode(ctx, args)
}

// DefaultOrphaned is how long an agent waits for calls from its engine before it ends.
const DefaultOrphaned = 10 * time.Minute

const (
	// firstCall is how long an agent waits for the first call: other machines may start slowly.
	firstCall = time.Hour
	// keepTime is how long an agent stays after its engine's last call if it keeps the engine's records.
	keepTime = 24 * time.Hour
)

// Serve is `plimsoll node agent`: it reads its [Credentials] (gob) from its input or a file,
// and serves until ctx ends or its engine is silent for too long.
func Serve(ctx context.Context, args []string, stdin io.Reader) (err error) {
	ctx, ignore := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer ignore()
	flags := flag.NewFlagSet("plimsoll node agent", flag.ContinueOnError)
	listen := flags.String("listen", "tcp::7700", "NETWORK:ADDRESS of the engine's calls")
	name := flags.String("name", "host", "of the machine, which calls must be for")
	var at netip.Addr
	flags.TextVar(&at, "address", netip.AddrFrom4([4]byte{127, 0, 0, 1}), "under which other hosts reach this one")
	dir := flags.String("dir", ".", "where logs are kept")
	file := flags.String("credentials", "", "file with the credentials; empty: standard input")
	orphaned := flags.Duration("orphaned", DefaultOrphaned, "end when the engine is silent for so long")
	index := flags.Int("index", -1, "of the machine where links are emulated between machines; -1: they are not")
	emulator := flags.String("emulator", link.Own, "of links between machines: user, or netem of the kernel")
	keep := flags.String("keep", "", "directory: while it exists, end only a day after the engine's last word")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *index >= 0 && *emulator == link.Own { // a user namespace has too few rights for netem
		if done, err := testbed.EnterHere(); done || err != nil {
			return err
		}
	}
	config, err := readCredentials(*file, stdin)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	bed, err := testbed.New(ctx, testbed.Options{Dir: *dir, Plain: *index < 0, Emulate: *emulator})
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, bed.Close(stop))
	}()
	host, err := bed.MeshHost(*name, *index+1, at)
	if err != nil {
		return err
	}
	network, address, _ := strings.Cut(*listen, ":")
	l, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	fmt.Println(l.Addr()) // the caller may have asked for any port
	s := &server{bed: bed, host: host, processes: map[testbed.ProcessID]testbed.Process{}}
	web := s.web(config, s.handler())
	defer web.Close()
	go func() { end(web.ServeTLS(l, "", "")) }()
	return s.await(ctx, *orphaned, *keep)
}

func readCredentials(file string, stdin io.Reader) (*tls.Config, error) {
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("agent: read the credentials: %w", err)
		}
		defer f.Close()
		stdin = f
	}
	var credentials Credentials
	if err := gob.NewDecoder(stdin).Decode(&credentials); err != nil {
		return nil, fmt.Errorf("agent: read the credentials: %w", err)
	}
	return credentials.config()
}

// web returns the HTTP server. A stream that is not read must not block the others.
func (s *server) web(config *tls.Config, h http.Handler) *http.Server {
	web := &http.Server{
		Handler: h, TLSConfig: config, ErrorLog: log.New(os.Stderr, "", 0), Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 1 << 16, MaxReceiveBufferPerStream: 1 << 18, MaxReceiveBufferPerConnection: 4<<20 - 1,
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
		},
	}
	web.Protocols.SetHTTP2(true)
	return web
}

// stopTimeout is how long processes may take to end with their agent.
const stopTimeout = 30 * time.Second

// await returns when ctx ends or there was no call for too long. After that time it stops the
// processes even if the agent stays.
func (s *server) await(ctx context.Context, orphaned time.Duration, keep string) error {
	for begun := time.Now(); ; {
		silent, limit := time.Since(begun), max(orphaned, firstCall)
		if last := s.last.Load(); last != 0 {
			silent, limit = time.Since(time.Unix(0, last)), orphaned
		}
		if _, err := os.Stat(keep); silent >= limit && err == nil {
			if err := s.Begin(ctx); err != nil {
				fmt.Fprintf(os.Stderr, "agent: %v\n", err)
			}
			limit = max(limit, keepTime)
		}
		if silent >= limit { // not an error, so a container is not restarted
			fmt.Fprintf(os.Stderr, "agent: the engine has been silent for %s: the end\n", words.Duration(silent))
			return nil
		}
		if !timing.Pause(ctx, min(limit-silent, orphaned)) { // a call, or removing the directory, changes the limit
			return context.Cause(ctx)
		}
	}
}

// Begin stops all processes that calls have started.
func (s *server) Begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.processes))
	s.mu.Unlock()
	return testbed.StopAll(ctx, slices.DeleteFunc(all, testbed.Ended))
}

// server is the state of an agent.
type server struct {
	bed  *testbed.Testbed
	host testbed.Host
	last atomic.Int64 // time of the last call, Unix nanoseconds; 0: none yet

	mu        sync.Mutex
	processes map[testbed.ProcessID]testbed.Process // including ended ones, which callers ask about
}

func (s *server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if on, here := r.Header.Get(machineHeader), s.host.Name(); on != here {
			text := fmt.Sprintf("machine %s was called, and the agent at this address is machine %s's", on, here)
			http.Error(w, text, http.StatusMisdirectedRequest)
			return
		}
		s.last.Store(time.Now().UnixNano())
		if err := s.invoke(r.Context(), newExchange(w, r), r.URL.Path); err != nil {
			http.Error(w, "agent: "+err.Error(), http.StatusBadRequest)
		}
	})
}

// invoke calls a method by a path such as /host/Port with the arguments of the request and, as a reader, the body
// after them. Its results are the answer, followed by the content of a reader it returns, unless the method takes
// the exchange and answers itself.
func (s *server) invoke(ctx context.Context, x *exchange, path string) error {
	of, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	target := map[string]any{
		"agent": s, "files": s.host.Files(), "host": s.host, "machine": s.host.Machine(), "testbed": s.bed,
	}[of]
	if of == "process" {
		var id testbed.ProcessID
		if err := x.dec.Decode(&id); err != nil {
			return err
		}
		s.mu.Lock()
		p := s.processes[id]
		s.mu.Unlock()
		if p == nil {
			x.answer(fmt.Errorf("agent: process %v: %w", id, os.ErrProcessDone))
			return nil
		}
		target = served{p}
	}
	if target == nil || !reflect.ValueOf(target).MethodByName(name).IsValid() {
		return errors.New("there is no " + path)
	}
	method, streams := reflect.ValueOf(target).MethodByName(name), false
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		arg := reflect.New(method.Type().In(i))
		switch to := arg.Interface().(type) {
		case *context.Context:
			*to = ctx
		case **exchange:
			*to, streams = x, true
		case *io.Reader:
			*to = x.in
		default:
			if err := x.dec.Decode(to); err != nil {
				return err
			}
		}
		args = append(args, arg.Elem())
	}
	var err error
	var results []any
	var stream io.ReadCloser
	for _, r := range method.Call(args) {
		switch r.Type() {
		case reflect.TypeFor[error]():
			err, _ = r.Interface().(error)
		case reflect.TypeFor[io.ReadCloser]():
			if stream, _ = r.Interface().(io.ReadCloser); stream != nil {
				defer stream.Close()
			}
		default:
			results = append(results, r.Interface())
		}
	}
	if !streams && x.answer(err, results...) && stream != nil {
		_, err = io.Copy(x, stream)
		x.fail(err)
	}
	return nil
}

// Respond answers measurements until the request ends.
func (s *server) Respond(ctx context.Context, x *exchange) {
	at, stop, err := s.host.Respond(ctx)
	if err == nil {
		defer stop()
	}
	if x.answer(err, at) {
		<-ctx.Done()
	}
}
