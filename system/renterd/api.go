package renterd

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// connect makes an API without asking the node anything. All of it needs the password.
func connect(base *url.URL, password string, from testbed.Host) (*sia.API, error) {
	return sia.Connect(name, base.JoinPath("/api"), nil, password, from, explain)
}

// hostFull is what a host says that has no room for a sector, in the line for it
// of the answer to an upload of which a slab failed.
const hostFull = "host responded with error: failed to write sector: failed to read response: not enough storage"

// explain adds what a status and its text mean.
func explain(err error) error {
	var e *web.StatusError
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w: %w; the variable that option `password` names must hold the API password", err,
			system.ErrAuth)
	case strings.Contains(e.Said, "bucket not found"):
		return fmt.Errorf("%w; set option `bucket` to one that is there", err)
	case strings.Contains(e.Said, "not enough hosts"), strings.Contains(e.Said, "not enough contracts"):
		return fmt.Errorf("%w: %w; lower option `total_shards`, or give the node more contracts", err, system.ErrTooFew)
	case strings.Contains(e.Text, hostFull):
		// Before the answer, which is long: it has a line for each host.
		return fmt.Errorf("%w on %d hosts: %w", system.ErrQuota, strings.Count(e.Text, hostFull), err)
	case e.Status == http.StatusNotFound:
		return fmt.Errorf("%w: %w", err, system.ErrNotFound)
	}
	return err
}
