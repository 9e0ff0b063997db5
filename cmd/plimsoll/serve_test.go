package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

// served is what `plimsoll serve` prints first, and the addresses in it.
func served(t *testing.T, args ...string) (line string, addresses []string) {
	t.Helper()
	said, w := io.Pipe()
	p := &program{ui: ui.New(io.Discard, w), stdin: strings.NewReader(""), stdout: io.Discard, stderr: w}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		root := p.root()
		root.SetArgs(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
		err := root.ExecuteContext(ctx)
		w.CloseWithError(err)
		over <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	must(t, err)
	return line, regexp.MustCompile(`http://[^ \n]+`).FindAllString(line, -1)
}

func httpStatus(t *testing.T, c *http.Client, address string) int {
	t.Helper()
	r, err := c.Get(address)
	must(t, err)
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}

// What serve prints works when it is pasted, and nothing works without the token.
func TestServeWantsItsToken(t *testing.T) {
	root := t.TempDir()
	made, err := record.Create(filepath.Join(root, "a"), []byte("{}"), nil, nil)
	must(t, err)
	must(t, made.Close())
	line, addresses := served(t, root)
	if len(addresses) != 1 {
		t.Fatalf("%q", line)
	}
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar}
	bare, _, _ := strings.Cut(addresses[0], "?")
	if got := httpStatus(t, browser, bare); got != http.StatusForbidden {
		t.Errorf("without the token: %d", got)
	}
	if got := httpStatus(t, browser, addresses[0]); got != http.StatusOK {
		t.Errorf("as printed: %d", got)
	}
	if got := httpStatus(t, browser, bare+"?scenario=retrieve"); got != http.StatusOK {
		t.Errorf("a link of the page: %d", got)
	}
	t.Setenv(tokenVariable, "of the+test&1")
	if _, addresses = served(t, root); httpStatus(t, http.DefaultClient, addresses[0]) != http.StatusOK {
		t.Error("with a token of one's own")
	}
	if _, addresses = served(t, root, "--no-token"); strings.Contains(addresses[0], "?") ||
		httpStatus(t, http.DefaultClient, addresses[0]) != http.StatusOK {
		t.Errorf("%q without a token", addresses[0])
	}
}
