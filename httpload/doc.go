// Package httpload is the HTTP load generator: it fetches objects, whole or in ranges,
// from a server and records how and when every operation ended.
//
// There are two ways to issue operations: a closed loop (every connection sends the next
// request when its answer is complete) and an open loop (an arrival process decides, and
// latencies count from the intended start). There are two ways to receive, stated in
// every result: verify compares every byte with the object's content; drop lets the kernel
// discard the payload (recv with MSG_TRUNC), which takes a tenth of the CPU and checks only
// status, Content-Range and length.
//
// For plain HTTP/1.1 it uses its own client, with one event loop per thread
// (loop_linux.go): net/http needs several times the CPU, and only our own event loop knows
// how long an answer waited for us. TLS and HTTP/2 use net/http (nethttp.go).
package httpload
