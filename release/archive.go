package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
)

// entry is a file of an archive: what lies at path or, without one, data.
type entry struct {
	name string
	path string
	data []byte
	mode int64 // 0: 0o644
}

// writeArchive packs files under one folder.
func writeArchive(path, folder string, files []entry, when time.Time) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		zip, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := pack(zip, folder+"/", files, when); err != nil {
			return err
		}
		return zip.Close()
	})
}

// pack writes a tar archive of files, sorted, with one time and no owner: equal content gives
// equal bytes.
func pack(w io.Writer, prefix string, files []entry, when time.Time) error {
	files = slices.SortedFunc(slices.Values(files), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	archive := tar.NewWriter(w)
	for _, f := range files {
		data := f.data
		if f.path != "" {
			var err error
			if data, err = os.ReadFile(f.path); err != nil {
				return err
			}
		}
		head := &tar.Header{Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: prefix + f.name,
			Size: int64(len(data)), Mode: cmp.Or(f.mode, 0o644), ModTime: when}
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		if _, err := archive.Write(data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeSums writes the SHA-256 of files as sha256sum -c reads them.
func writeSums(path string, files []string) error {
	var b strings.Builder
	for _, f := range slices.Sorted(slices.Values(files)) {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		b.WriteString(hex.EncodeToString(sum[:]) + "  " + filepath.Base(f) + "\n")
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, b.String())
		return err
	})
}
