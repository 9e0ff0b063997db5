//go:build !linux

package httpload

func mapFile(path string) ([]byte, func(), error) { return readWhole(path) }
