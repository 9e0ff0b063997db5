package testbed

import (
	"context"
	"errors"
	"testing"
)

// One late answer of a machine is not the death of its emulator, two are; and a mesh that is not
// joined cannot be changed.
func TestMeshAnswersLate(t *testing.T) {
	bed := &Testbed{opt: Options{Mesh: true}}
	if err := bed.Reshape(t.Context(), ShapeSpec{}); err == nil {
		t.Error("changed links that are not there")
	}
	late := 0
	bed.mesh.joined = []member{{call: func(context.Context, MeshCall) (MeshAnswer, error) {
		if late--; late >= 0 {
			return MeshAnswer{}, errors.New("no answer")
		}
		return MeshAnswer{}, nil
	}}}
	for n, died := range map[int]bool{0: false, 1: false, 2: true} {
		if late = n; (bed.EmulatorErr() != nil) != died {
			t.Errorf("%d late answers: died is %t", n, !died)
		}
	}
}
