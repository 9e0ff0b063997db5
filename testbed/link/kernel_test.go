package link

import (
	"fmt"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// onHub makes hosts on a hub, shaped by the kernel.
func onHub(t testing.TB, discipline string, names ...string) (shape func(Topology) error, hosts map[string]*labHost) {
	t.Helper()
	needRoot(t)
	h := newHub(t)
	must(t, h.nl.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "hub"}}))
	bridge, err := h.nl.LinkByName("hub")
	must(t, err)
	must(t, h.nl.LinkSetUp(bridge))
	var devices []Device
	hosts = map[string]*labHost{}
	for i, name := range names {
		host, d := h.attach(t, name, i+1)
		devices, hosts[name] = append(devices, d), host
		port, err := h.nl.LinkByName(d.Ports.Down.Device)
		must(t, err)
		must(t, h.nl.LinkSetMaster(port, bridge))
	}
	return func(top Topology) error { return ShapeKernel(discipline, devices, top) }, hosts
}

func TestKernelShapes(t *testing.T) {
	for _, c := range []struct {
		discipline string
		params     Params
		rtt        [2]float64 // seconds, bounds of the median when the link is idle
	}{
		{NetemDiscipline, Params{Rate: 5e7, Delay: 10 * time.Millisecond}, [2]float64{0.02, 0.03}},
		{TBFDiscipline, Params{Rate: 5e7}, [2]float64{0, 0.01}},
		{TBFDiscipline, Params{Rate: 1e9}, [2]float64{0, 0.01}},
	} {
		t.Run(fmt.Sprintf("%s_%g", c.discipline, c.params.Rate), func(t *testing.T) {
			shape, hosts := onHub(t, c.discipline, "a", "b")
			must(t, shape(Topology{})) // takes off what is not there
			_, err := hosts["a"].initiateTo(t, hosts["b"], Want{}).measureRTT()
			must(t, err) // the hosts are connected
			wantError(t, shape(Topology{Pairs: map[Pair]Params{{"a", "b"}: {Delay: 1}}}), "pairs")
			if c.discipline == TBFDiscipline {
				wantError(t, shape(symmetric(Params{Rate: 1e8, Loss: 0.1}, "a")), "rate alone")
			}
			top := symmetric(c.params, "a", "b")
			err = shape(top)
			if Works(c.discipline) != nil {
				wantError(t, err, "the link of")
				t.Skip("the kernel has no " + c.discipline)
			}
			must(t, err)
			m := hosts["a"].measureTo(t, hosts["b"], top.Want("a", "b"))
			must(t, nearRate(t, "rate", m.Rate, TCPPayloadRate(c.params.Rate, false)))
			if m.RTT < c.rtt[0] || m.RTT > c.rtt[1] {
				t.Errorf("round trip %v s", m.RTT)
			}
			must(t, shape(Topology{}))
			if rtt := hosts["a"].handshakeTo(t, hosts["b"]); rtt > 15*time.Millisecond {
				t.Errorf("after the shape: %v", rtt)
			}
		})
	}
}
