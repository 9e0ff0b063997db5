// Package httpload is the HTTP load generator: it fetches objects, whole or in
// ranges, from a server and says of every single operation how it ended and
// when.
//
// Two ways to issue operations: a closed loop (every connection asks again when
// its answer is complete) and an open loop (an arrival process decides, and
// latencies count from the intended start). Two ways to receive, named in every
// result: verify compares every byte with what the object holds; drop lets the
// kernel discard the payload (recv with MSG_TRUNC), which costs a tenth of the
// CPU and checks status, Content-Range and length only.
//
// Plain HTTP/1.1 is spoken by a client of our own, one event loop per thread
// (loop_linux.go), because net/http costs a multiple of the CPU and because
// only an event loop of our own knows how long an answer waited for us. TLS and
// HTTP/2 go through net/http (nethttp.go).
package httpload
