package ssh

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/remote"
)

// An edited list does not prove that a run is gone.
func TestFindInEditedList(t *testing.T) {
	p := Place{Dir: "/var/tmp", Hosts: []host{{Name: "box2"}, {Name: "box1"}}}
	for _, first := range []remote.Machine{
		{Name: "box0", Dir: "/var/tmp/plimsoll-rabc"}, {Name: "box1", Dir: "/mnt/plimsoll-rabc"},
	} {
		_, err := p.Find(t.Context(), "rabc", first)
		if err == nil || errors.Is(err, remote.ErrGone) || !strings.Contains(err.Error(), "the run is on "+first.Name) {
			t.Errorf("%s in %s: %v", first.Name, first.Dir, err)
		}
	}
}

// Modules that netem lacks are recognised by the machine's list of modules; without a list, none is
// reported.
func TestLacking(t *testing.T) {
	for _, c := range []struct{ id, dep, builtin, loaded, want string }{
		{"0", "net/sched/sch_netem.ko.xz: \nnet/sched/sch_tbf.ko:", "drivers/net/vxlan/vxlan.ko", "", ""},
		{"0", "kernel/net/sched/sch_tbf.ko:", "", "vxlan", "sch_netem"},
		{"1000", "kernel/net/xsch_netem.ko:", "", "", "root sch_netem sch_tbf vxlan"},
		{"1000", "", "", "", "root"},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"modules.dep": c.dep, "modules.builtin": c.builtin, c.loaded + "/x": "x"} {
			if text == "" && file != "modules.builtin" {
				continue
			}
			path := filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		script := strings.NewReplacer("/lib/modules/$(uname -r)", dir, "/sys/module", dir).Replace(lacking)
		out, err := exec.Command("sh", "-c", "id() { echo "+c.id+"; }; "+script).Output()
		if got := strings.Join(strings.Fields(string(out)), " "); got != c.want || err != nil {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}
