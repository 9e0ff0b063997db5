package sftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/system/systemtest/imagetest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}})
}

// sshd from an image behaves like the one from the machine's package.
func TestConformanceFromImage(t *testing.T) {
	systemtest.Need(t, System{}, nil)
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil && os.Geteuid() == 0 {
		t.Fatal(err)
	}
	img := imagetest.OfMachine(t, "/run/sshd", "/usr/sbin/sshd", "/usr/lib/openssh/sshd-session",
		"/usr/lib/openssh/sshd-auth", "/bin/bash", "/bin/sh")
	opt := system.Options{"image": systemtest.Pulled(t, img)}
	systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Image: true})
}

var must = systemtest.Must

// server starts an sshd with two objects, and returns options to attach to it.
func server(t *testing.T) (n started, opt system.Options) {
	t.Helper()
	systemtest.Need(t, System{}, nil)
	n = systemtest.Start(t, System{}, nil, systemtest.Hosts(t, 2)).Nodes()[0].(started)
	for _, name := range []string{"a", "b"} {
		_, err := n.Seed(systemtest.Context(t), name, 300_000, systemtest.Content(name, 300_000))
		must(t, err)
	}
	return n, system.Options{
		"url": fmt.Sprintf("sftp://%s@%s%s", n.server.User, n.server.Address, n.server.Path),
		"key": n.server.KeyFile, "known_hosts": n.server.KnownHosts,
	}
}

// wantTheirs reads an object of the server.
func wantTheirs(t *testing.T, n system.Store) {
	t.Helper()
	var got bytes.Buffer
	if err := n.Get(t.Context(), "a", &got); err != nil || !bytes.Equal(got.Bytes(), systemtest.Bytes("a", 300_000)) {
		t.Errorf("get of someone's file: %d bytes, %v", got.Len(), err)
	}
}

func TestAttachForReading(t *testing.T) {
	_, opt := server(t)
	c, err := systemtest.Attach(t, System{}, opt, false)
	must(t, err)
	if v := c.Identity()["version"]; !strings.Contains(v, "OpenSSH") {
		t.Errorf("version %q", v)
	}
	n := c.Nodes()[0].(system.Store)
	objects, err := system.Found(t.Context(), n)
	if err != nil || len(objects) != 3 { // the probe belongs to the server, so it is an object for an attached client
		t.Fatalf("objects %+v, %v", objects, err)
	}
	wantTheirs(t, n)
	_, put := n.Put(t.Context(), "x", 1, strings.NewReader("x"))
	for what, err := range map[string]error{
		"put": put, "update": n.(system.Updater).Update(t.Context(), "a", 1, strings.NewReader("x")),
		"delete": n.(system.Deleter).Delete(t.Context(), "a"),
	} {
		if !errors.Is(err, system.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, n.(system.Healther).Health(t.Context()))
	if _, ok := n.(system.Stats); ok {
		t.Error("an attached node tells what a disk that it cannot see holds")
	}
}

func TestAttachChangesOnlyItsOwn(t *testing.T) {
	_, opt := server(t)
	c, err := systemtest.Attach(t, System{}, opt, true)
	must(t, err)
	n := c.Nodes()[0].(system.Store)
	if err := n.(system.Deleter).Delete(t.Context(), "a"); !errors.Is(err, system.ErrReadOnly) {
		t.Errorf("delete of someone's file: %v", err)
	}
	_, err = n.Put(t.Context(), "a", 3, strings.NewReader("new")) // beside a foreign file
	must(t, err)
	wantTheirs(t, n)
	ref, err := n.Put(t.Context(), "mine", 4, strings.NewReader("mine"))
	must(t, err)
	_, err = n.Put(t.Context(), "mine", 4, strings.NewReader("MINE")) // over a file of this run
	must(t, err)
	must(t, n.(system.Updater).Update(t.Context(), ref, 3, strings.NewReader("new")))
	must(t, n.(system.Deleter).Delete(t.Context(), ref))
	if err := n.Get(t.Context(), ref, io.Discard); !errors.Is(err, system.ErrNotFound) {
		t.Errorf("get after delete: %v", err)
	}
	if all, err := system.All(t.Context(), n.(system.Lister)); err != nil || len(all) != 1 || all[0].Name != "a" {
		t.Errorf("it lists %+v, %v", all, err)
	}
}

func TestAttachErrors(t *testing.T) {
	n, opt := server(t)
	with := func(kv ...string) system.Options {
		o := maps.Clone(opt)
		for i := 0; i < len(kv); i += 2 {
			o[kv[i]] = kv[i+1]
		}
		return o
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	t.Setenv("PLIMSOLL_TEST_PASSWORD", "hunter2")
	pem, err := os.ReadFile(n.server.KeyFile)
	must(t, err)
	wrong, err := ssh.ParsePrivateKey(pem)
	must(t, err)
	other := file("other", knownhosts.Line([]string{n.server.Address}, wrong.PublicKey())+"\n")
	for _, c := range []struct {
		want string
		is   error
		opt  system.Options
	}{
		{"wrong credentials", system.ErrAuth, with("key", "", "password", "PLIMSOLL_TEST_PASSWORD")},
		{"wrong credentials", system.ErrAuth, with("key", filepath.Join(filepath.Dir(n.server.Path), "host_key"))},
		{"host key is not known", nil, with("known_hosts", file("empty", ""))},
		{"may be another server", nil, with("known_hosts", other)},
		{"no such file", nil, with("known_hosts", filepath.Join(dir, "none"))},
		{"option \"key\"", nil, with("key", file("no key", "no key"))},
		{"give a private key", nil, with("key", "")},
		{"variable PLIMSOLL_TEST_UNSET is not set", nil, with("password", "PLIMSOLL_TEST_UNSET")},
		{"not sftp://", nil, with("url", "sftp://host")},
		{"would be recorded", nil, with("url", "sftp://user:hunter2@host/x")},
		{"no such object", system.ErrNotFound, with("url", opt["url"]+"/none")},
		{"no directory", nil, with("url", opt["url"]+"/a")},
		{"connection refused", nil, with("url", "sftp://user@127.0.0.1:1/x")},
	} {
		_, err := systemtest.Attach(t, System{}, c.opt, false)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

// TestAnswersNothing attaches to a server that accepts connections and never answers.
func TestAnswersNothing(t *testing.T) {
	_, opt := server(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	opt["url"] = "sftp://user@" + l.Addr().String() + "/x"
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = system.Begin(ctx, System{}, system.Attach, system.Deployment{Client: systemtest.Hosts(t, 1)[0],
		Options: opt})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("error %v", err)
	}
}

// TestFullDisk puts on a file system of 1 MiB.
func TestFullDisk(t *testing.T) {
	n, _ := server(t)
	if err := unix.Mount("plimsoll", n.dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer unix.Unmount(n.dir, unix.MNT_DETACH)
	const size = 4 << 20
	_, err := n.Put(systemtest.Context(t), "large", size, systemtest.Content("large", size))
	if !errors.Is(err, system.ErrQuota) {
		t.Errorf("put on a full disk: %v, want ErrQuota", err)
	}
	if _, err := n.Put(systemtest.Context(t), "small", 10, systemtest.Content("small", 10)); err != nil {
		t.Errorf("what is left of a failed put fills the disk: %v", err)
	}
}
