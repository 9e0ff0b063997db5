// Package workload defines what is stored and when it is requested: object sizes, seeded content
// that can be verified without a copy, and arrival processes as pure functions of time.
package workload
