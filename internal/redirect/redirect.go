// Package redirect follows the redirects of HTTP endpoints.
package redirect

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// Most is the largest number of redirects followed for one request.
const Most = 5

// ErrTooMany means that a chain of redirects is longer than Most.
var ErrTooMany = errors.New("too many redirects")

// statuses of answers that redirect to their Location.
var statuses = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
	http.StatusTemporaryRedirect, http.StatusPermanentRedirect}

// Do makes a GET or HEAD request with do and follows redirects. own are the user's headers: they
// may be credentials, so they are not sent to another host.
func Do(
	req *http.Request, own http.Header, do func(*http.Request) (*http.Response, error),
) (resp *http.Response, followed int, err error) {
	for {
		resp, err := do(req)
		if err != nil {
			return nil, followed, err
		}
		location := resp.Header.Get("Location")
		if !slices.Contains(statuses, resp.StatusCode) || location == "" {
			return resp, followed, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // a connection is only reused if the body is read to its end
		resp.Body.Close()
		if followed++; followed > Most {
			return nil, followed, ErrTooMany
		}
		to, err := req.URL.Parse(location)
		if err != nil || to.Host == "" || to.Scheme != "https" && (to.Scheme != "http" || req.URL.Scheme == "https") {
			return nil, followed, fmt.Errorf("redirect to %q is not followed", location)
		}
		next := req.Clone(req.Context())
		next.URL, next.Host = to, req.Host
		if to.Host != req.URL.Host || to.Scheme != req.URL.Scheme {
			next.Host = ""
			for name := range own {
				next.Header.Del(name)
			}
			next.Header.Del("Authorization")
			next.Header.Del("Cookie")
		}
		req = next
	}
}
