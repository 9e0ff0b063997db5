package httpload

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// userAgent is what servers see in their logs.
const userAgent = "plimsoll"

// requestLines builds what follows the path of a request, but for its Range and the empty line.
func requestLines(u *url.URL, header map[string][]string, fresh bool) []byte {
	host := u.Host
	for name, v := range header {
		if strings.EqualFold(name, "Host") && len(v) > 0 {
			host = v[0]
		}
	}
	b := []byte(" HTTP/1.1\r\nHost: " + host + "\r\n")
	line := func(name, value string) { b = append(b, name+": "+value+"\r\n"...) }
	names := make([]string, 0, len(header))
	agent := true
	for name := range header {
		names = append(names, name)
		agent = agent && !strings.EqualFold(name, "User-Agent")
	}
	slices.Sort(names)
	if agent {
		line("User-Agent", userAgent)
	}
	// Not asking means gzip from some servers, and then nothing can be checked.
	line("Accept-Encoding", "identity")
	if fresh {
		line("Connection", "close")
	}
	for _, name := range names {
		if strings.EqualFold(name, "Host") {
			continue
		}
		for _, v := range header[name] {
			line(name, v)
		}
	}
	return b
}

// reservedHeader names the fields that are the load generator's own.
func reservedHeader(name string) bool {
	switch strings.ToLower(name) {
	case "range", "accept-encoding", "connection", "content-length", "transfer-encoding", "te", "upgrade":
		return true
	}
	return false
}

// appendRange appends the value of a Range header.
func appendRange(b []byte, r *request) []byte {
	b = append(b, "bytes="...)
	b = strconv.AppendInt(b, r.off, 10)
	b = append(b, '-')
	return strconv.AppendInt(b, r.off+r.length-1, 10)
}
