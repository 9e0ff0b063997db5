package renterd

import (
	"net/http"
	"net/url"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// connect returns an API without contacting the node. All its calls need the password.
func connect(base *url.URL, password string, from testbed.Host) *sia.API {
	return sia.Connect(sia.API{System: name, Base: base.JoinPath("/api"), Consensus: "/bus/consensus/state",
		Header: http.Header{}, Meanings: meanings()}, password, from)
}

func meanings() []sia.Meaning {
	return []sia.Meaning{
		{Status: http.StatusUnauthorized, Means: system.ErrAuth,
			Hint: "the variable that option `password` names must hold the API password"},
		{Text: "bucket not found", Hint: "set option `bucket` to one that is there"},
		{Text: "not enough hosts", Means: system.ErrTooFew, Hint: tooFewHint},
		{Text: "not enough contracts", Means: system.ErrTooFew, Hint: tooFewHint},
		// A host without room reports this in its line of the answer to an upload with a failed
		// slab.
		{Text: "host responded with error: failed to write sector: failed to read response: not enough storage",
			Means: system.ErrQuota},
		{Status: http.StatusNotFound, Means: system.ErrNotFound},
	}
}

const tooFewHint = "lower option `total_shards`, or give the node more contracts"
