package tahoe

import "github.com/plimsoll-project/plimsoll/system"

// Accounts that a client keeps of operations.
const (
	upload    = "up"
	download  = "down"
	mapupdate = "mapupdate"
	retrieve  = "retrieve"
	publish   = "publish"
)

// leaves notes which accounts the latest operation left.
func (n *node) leaves(accounts ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = accounts
}

// reading is the accounts that reading ref leaves; a literal cap leaves none.
func reading(ref system.Ref) []string {
	switch c, _ := parseCap(ref); c.kind {
	case "CHK":
		return []string{download}
	case "LIT":
		return nil
	}
	return []string{mapupdate, retrieve}
}
