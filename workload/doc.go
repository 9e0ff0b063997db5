// Package workload says what is stored and when it is asked for: object sizes,
// seeded content that can be verified without keeping a copy, and arrival
// processes as pure functions of time.
package workload
