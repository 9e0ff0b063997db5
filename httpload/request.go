package httpload

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
)

// userAgent is the User-Agent of requests.
const userAgent = "plimsoll"

// header returns the header of each request for the object, without Range, and its Host.
func (o *Object) header(u *url.URL) (host string, all http.Header) {
	// Without identity some servers send gzip, which cannot be compared.
	host, all = u.Host, http.Header{"User-Agent": {userAgent}, "Accept-Encoding": {"identity"}}
	for name, v := range o.Header {
		if name = textproto.CanonicalMIMEHeaderKey(name); name != "Host" {
			all[name] = v
		} else if len(v) > 0 {
			host = v[0]
		}
	}
	return host, all
}

// requestLines builds the part of a request after its path, without Range and the empty line.
func (o *Object) requestLines(u *url.URL, fresh bool) []byte {
	host, header := o.header(u)
	if fresh {
		header.Set("Connection", "close")
	}
	b := bytes.NewBufferString(" HTTP/1.1\r\nHost: " + host + "\r\n")
	header.Write(b) // in the order of their names
	return b.Bytes()
}

// reserved are the header fields that the load generator sets itself.
var reserved = []string{"range", "accept-encoding", "connection", "content-length", "transfer-encoding", "te",
	"upgrade"}

// appendSpan appends the span of a range, as in "bytes=0-99".
func appendSpan(b []byte, r *request) []byte {
	b = strconv.AppendInt(b, r.off, 10)
	b = append(b, '-')
	return strconv.AppendInt(b, r.off+r.length-1, 10)
}
