package report

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// WithToken serves next to clients with the token: in the address as ?token=…, which a browser
// then keeps in a cookie, or as a bearer token. Every user of the machine can connect to a
// loopback address, but may not be allowed to read the run directory.
func WithToken(next http.Handler, token string) http.Handler {
	same := func(given string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1 }
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// Cookies do not depend on the port, so each server's has its own name.
		name := "plimsoll"
		if _, port, err := net.SplitHostPort(req.Host); err == nil {
			name += "-" + port
		}
		bearer, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		kept := ""
		if c, err := req.Cookie(name); err == nil {
			kept = c.Value
		}
		w.Header().Set("Referrer-Policy", "no-referrer")
		switch {
		case same(req.URL.Query().Get("token")):
			http.SetCookie(w, &http.Cookie{Name: name, Value: token, Path: "/", HttpOnly: true,
				SameSite: http.SameSiteStrictMode})
		case same(kept), same(bearer):
		default:
			http.Error(w, "this needs the token: open the whole address that plimsoll printed, with ?token=…, or "+
				"send `Authorization: Bearer TOKEN`", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, req)
	})
}
