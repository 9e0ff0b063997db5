package boxo

import (
	"errors"
	"net/http"

	"github.com/ipfs/go-cid"
)

const coolPath = "/plimsoll/cool/" // POST with a CID: forget what is near of it

// cooler forgets what a node fetched from others.
type cooler struct{ store shelves }

func (c cooler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	root, err := cid.Decode(r.PathValue("cid"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch err := c.store.forget(r.Context(), root); {
	case errors.Is(err, errKept):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, "cool: "+err.Error(), http.StatusInternalServerError)
	}
}
