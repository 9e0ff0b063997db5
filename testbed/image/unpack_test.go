package image

import (
	"archive/tar"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/plimsoll-project/plimsoll/system/systemtest/imagetest"
)

type entry = imagetest.Entry

func file(name, content string) entry { return entry{Name: name, Content: content} }

func link(name, to string) entry { return entry{Name: name, Type: tar.TypeSymlink, Link: to} }

// unpacked is what an image becomes: path → content, "dir", or "→ TARGET" of a link.
func unpacked(t *testing.T, img v1.Image) (dir string, got map[string]string, err error) {
	t.Helper()
	dir = t.TempDir()
	err = unpack(t.Context(), img, dir)
	got = map[string]string{}
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		path := filepath.Join(dir, name)
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			got[name] = "dir"
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			got[name] = "→ " + to
		default:
			b, err := os.ReadFile(path)
			must(t, err)
			got[name] = string(b)
		}
		return nil
	}))
	return dir, got, err
}

func TestUnpack(t *testing.T) {
	outside := t.TempDir()
	type layers = [][]entry
	type tree = map[string]string
	for name, tt := range map[string]struct {
		layers layers
		want   tree
		err    string
	}{
		"upper layers win": {layers{{file("a", "old"), {Name: "d/"}, file("d/x", "x")}, {file("./a", "new")}},
			tree{"a": "new", "d": "dir", "d/x": "x"}, ""},
		"a file where a directory was, and the reverse": {
			layers{{file("a/b", "b"), file("c", "c")}, {file("a", "file"), {Name: "c/"}}},
			tree{"a": "file", "c": "dir"}, ""},
		"whiteouts": {layers{{file("a", "a"), file("d/x", "x"), file("d/y", "y")},
			{{Name: ".wh.a"}, {Name: "d/.wh.x"}, {Name: "d/.wh.none"}, {Name: ".wh..wh.plnk"}}},
			tree{"d": "dir", "d/y": "y"}, ""},
		"an opaque directory, named after what is new in it": {layers{{file("d/x", "x"), file("d/s/old", "old")},
			{file("d/s/new", "new"), {Name: "d/.wh..wh..opq"}, {Name: "none/.wh..wh..opq"}}},
			tree{"d": "dir", "d/s": "dir", "d/s/new": "new"}, ""},
		"a hard link to a lower layer": {layers{{file("a", "a")}, {{Name: "b/c", Type: tar.TypeLink, Link: "/a"}}},
			tree{"a": "a", "b": "dir", "b/c": "a"}, ""},
		"a link that leads outside stays a link": {layers{{link("l", outside), link("m", "../../..")}},
			tree{"l": "→ " + outside, "m": "→ ../../.."}, ""},
		"links within are followed": {layers{{{Name: "usr/lib/"}, link("lib", "usr/lib")}, {file("lib/x", "x")}},
			tree{"usr": "dir", "usr/lib": "dir", "lib": "→ usr/lib", "usr/lib/x": "x"}, ""},
		"writing through a link outside": {layers{{link("l", outside)}, {file("l/x", "x")}}, nil, "l/x: "},
		"removing through a link outside": {
			layers{{link("l", filepath.Dir(outside))}, {{Name: "l/.wh." + filepath.Base(outside)}}}, nil, "escapes"},
		"a hard link outside": {
			layers{{{Name: "l", Type: tar.TypeLink, Link: "../../../../../../../../etc/passwd"}}}, nil, "escapes"},
		"a name outside": {layers{{file("../x", "x")}}, nil, "leads out of the image"},
		"devices are left out": {layers{{{Name: "dev/null", Type: tar.TypeChar}, {Name: "dev/sda", Type: tar.TypeBlock},
			{Name: "p", Type: tar.TypeFifo}}}, tree{}, ""},
		"of unknown type": {layers{{{Name: "a", Type: 'Q'}}}, nil, "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got, err := unpacked(t, imagetest.Image(t, v1.Config{}, tt.layers...))
			if tt.err != "" {
				wantError(t, err, tt.err)
				if left, _ := os.ReadDir(outside); len(left) > 0 {
					t.Errorf("written outside: %v", left)
				}
				return
			}
			must(t, err)
			if !maps.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	_, err := os.Stat(outside)
	must(t, err) // it is still there
}

func TestModes(t *testing.T) {
	dir, _, err := unpacked(t, imagetest.Image(t, v1.Config{}, []entry{
		{Name: "su", Mode: 0o6755}, {Name: "closed", Mode: 0o001}, {Name: "d/", Mode: 0o1555}, file("d/x", "x"),
	}))
	must(t, err)
	for name, want := range map[string]fs.FileMode{"su": 0o755, "closed": 0o401, "d": fs.ModeDir | 0o755} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// An archive has less than the size of a sparse file.
func TestSparseFiles(t *testing.T) {
	dir := t.TempDir()
	hole := filepath.Join(dir, "hole")
	must(t, errors.Join(os.WriteFile(hole, nil, 0o644), os.Truncate(hole, 1<<20)))
	tar, err := exec.Command("tar", "--sparse", "-C", dir, "-c", "hole").Output() // of GNU
	must(t, err)
	_, got, err := unpacked(t, imagetest.OfTars(t, v1.Config{}, tar))
	if err != nil || len(got["hole"]) != 1<<20 {
		t.Errorf("%d bytes, %v", len(got["hole"]), err)
	}
}
