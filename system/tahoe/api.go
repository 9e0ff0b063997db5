package tahoe

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// ask fetches a page or a document of the web API.
func (n *node) ask(ctx context.Context, path, query string) ([]byte, error) {
	return n.client.Call(ctx, web.Call{Method: http.MethodGet, URL: n.at(path, query).URL})
}

// server is a storage node as reported by a client.
type server struct {
	Nickname string `json:"nickname"`
	Status   string `json:"connection_status"`
	Version  string `json:"version"` // "tahoe-lafs/1.20.0"
}

// protocol returns the protocol of the connection: "gbs", "foolscap", or "" without a connection.
func (s server) protocol() string {
	switch {
	case strings.HasPrefix(s.Status, "Connected to "): // "Connected to tcp:10.0.0.1:1234 via tcp"
		return "foolscap"
	case strings.HasPrefix(s.Status, "connected"):
		return "gbs"
	}
	return ""
}

// servers asks the client for the storage nodes it knows.
func (n *node) servers(ctx context.Context) ([]server, error) {
	var answer struct {
		Servers []server `json:"servers"`
	}
	err := n.client.JSON(ctx, http.MethodGet, n.at("/", "t=json").URL, nil, nil, &answer)
	return answer.Servers, err
}

// connected returns the number of storage nodes to which the client is connected, and the
// protocols.
func connected(all []server) (n int, protocols map[string]bool) {
	protocols = map[string]bool{}
	for _, s := range all {
		if p := s.protocol(); p != "" {
			n++
			protocols[p] = true
		}
	}
	return n, protocols
}

// joined returns nil once the client is connected to all storage nodes over the requested protocol.
func (n *node) joined(ctx context.Context, c config) error {
	all, err := n.servers(ctx)
	if err != nil {
		return err
	}
	have, protocols := connected(all)
	if len(all) != c.nodes || have != c.nodes {
		var missing []string
		for _, s := range all {
			if s.protocol() == "" {
				status, _, _ := strings.Cut(s.Status, "\n") // the first line of a traceback
				missing = append(missing, fmt.Sprintf("%s: %s", s.Nickname, status))
			}
		}
		return fmt.Errorf("tahoe: %s reaches %d of %d storage nodes (%s)", n.name, have, c.nodes,
			strings.Join(missing, "; "))
	}
	if len(protocols) != 1 || !protocols[c.protocol] {
		return fmt.Errorf("tahoe: %s talks to the storage nodes by %v, not by %s as asked", n.name, protocols,
			c.protocol)
	}
	return nil
}
