package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// dialTime is how long a server may take to accept a connection before a check
// calls it unreachable.
const dialTime = 5 * time.Second

// Unreachable opens and closes a connection to each address, host:port, and
// tells those at which nobody answers.
func Unreachable(ctx context.Context, name string, addresses []string) []system.Problem {
	var all []system.Problem
	d := net.Dialer{Timeout: dialTime}
	for _, address := range addresses {
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			c.Close()
			continue
		}
		why := err.Error()
		if errors.Is(err, syscall.ECONNREFUSED) {
			why = "connection refused"
		}
		all = append(all, system.Problem{
			What: fmt.Sprintf("%s: nobody answers at %s: %s", name, address, why),
			Hint: "is the server running, and is its address right? see `with:` of the system in the experiment file",
		})
	}
	return all
}
