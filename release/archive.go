package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// entry is a file of an archive, with the content of the file at path or, without a path, data.
type entry struct {
	name string
	path string
	data []byte
	mode int64 // 0: 0o644
}

// writeArchive writes a compressed archive of files in one folder.
func writeArchive(path, folder string, files []entry, when time.Time) {
	var b bytes.Buffer
	zip := must(gzip.NewWriterLevel(&b, gzip.BestCompression))
	pack(zip, folder+"/", files, when)
	check(zip.Close())
	check(os.WriteFile(path, b.Bytes(), 0o644))
}

// pack writes a tar archive of files, sorted, all with the same time and without an owner: equal
// content gives equal bytes.
func pack(w io.Writer, prefix string, files []entry, when time.Time) {
	files = slices.SortedFunc(slices.Values(files), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	archive := tar.NewWriter(w)
	for _, f := range files {
		data := f.data
		if f.path != "" {
			data = must(os.ReadFile(f.path))
		}
		head := &tar.Header{Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: prefix + f.name,
			Size: int64(len(data)), Mode: cmp.Or(f.mode, 0o644), ModTime: when}
		check(archive.WriteHeader(head))
		must(archive.Write(data))
	}
	check(archive.Close())
}

// writeSums writes the SHA-256 of files in the format of sha256sum -c.
func writeSums(path string, files []string) {
	var b bytes.Buffer
	for _, f := range slices.Sorted(slices.Values(files)) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(must(os.ReadFile(f))), filepath.Base(f))
	}
	check(os.WriteFile(path, b.Bytes(), 0o644))
}
