package systemtest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

func testPortInUse(t *testing.T, s Suite) {
	has := false
	for _, o := range s.System.Info().Options {
		has = has || o.Name == "port"
	}
	if !has {
		t.Skip("the system has no option port")
	}
	hosts := Hosts(t, 2)
	port, err := hosts[0].FreePort(Context(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := hosts[0].Listen(Context(t), "tcp", system.JoinPort(hosts[0], port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = tryStart(t, s, system.Options{"port": strconv.Itoa(port)}, hosts)
	if err == nil || !strings.Contains(err.Error(), "port in use") || !strings.Contains(err.Error(), strconv.Itoa(port)) {
		t.Errorf("start on a port in use: %v", err)
	}
}
