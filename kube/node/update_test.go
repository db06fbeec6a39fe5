package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/node"
)

func TestAStatusIsSentWhenItHasChangedAndEveryFiveMinutes(t *testing.T) { // ns-5
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, w.config(), func(*node.Node) {
			after(time.Second)
			w.took()
			after(4 * time.Minute)
			calls := w.took()
			assert.InDelta(t, 24, len(calls), 2, "a read per 10 s")
			for _, call := range calls {
				assert.Contains(t, call, `get node rv="0"`, "and nothing written")
			}
			before := condition(w.object(), v1.NodeReady)
			after(2 * time.Minute)
			assert.Equal(t, 1, strings.Count(strings.Join(w.took(), "\n"), "patch"), "after five minutes")
			now := condition(w.object(), v1.NodeReady)
			assert.True(t, now.LastHeartbeatTime.After(before.LastHeartbeatTime.Time))
			assert.Equal(t, before.LastTransitionTime, now.LastTransitionTime)

			w.set(func(w *world) { w.pressure.Disk = true })
			after(11 * time.Second)
			assert.Contains(t, strings.Join(w.took(), "\n"), "patch node [status]")
			assert.Equal(t, v1.ConditionTrue, condition(w.object(), v1.NodeDiskPressure).Status)
		})
	})
}

func TestLabelsThatTheSchedulerUsesAreRestored(t *testing.T) { // ns-3
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, w.config(), func(*node.Node) {
			after(time.Second)
			want := w.object().Labels
			w.change(func(node *v1.Node) {
				node.Labels[v1.LabelOSStable] = "other"
				delete(node.Labels, v1.LabelArchStable)
				node.Labels["example.com/rack"] = "7"
			})
			w.took()
			after(21 * time.Second)
			assert.Equal(t, 1, strings.Count(strings.Join(w.took(), "\n"), "patch"))
			now := w.object().Labels
			assert.Equal(t, "7", now["example.com/rack"])
			delete(now, "example.com/rack")
			assert.Equal(t, want, now)
		})
	})
}

func TestAChangeThatIsAnnouncedIsSentWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, w.config(), func(n *node.Node) {
			after(time.Second)
			w.took()
			w.set(func(w *world) { w.pressure.Memory = true })
			for range 10 {
				n.Update()
			}
			after(1100 * time.Millisecond)
			assert.Equal(t, v1.ConditionTrue, condition(w.object(), v1.NodeMemoryPressure).Status)
			assert.Len(t, w.took(), 2, "once for all of them")
		})
	})
}

func TestAFailedUpdateIsTriedFiveTimesAPeriod(t *testing.T) { // ns-5, ns-6
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var failing atomic.Bool
		w.fail = func(call string) error {
			if failing.Load() && strings.HasPrefix(call, "patch") {
				return errors.New("boom")
			}
			return nil
		}
		run(t, w, w.config(), func(*node.Node) {
			after(time.Second)
			w.took()
			w.emitted()
			failing.Store(true)
			w.set(func(w *world) { w.pressure.PID = true })
			after(10400 * time.Millisecond)
			calls := strings.Join(w.took(), "\n")
			assert.Equal(t, 5, strings.Count(calls, "patch"))
			assert.Equal(t, 1, strings.Count(calls, `rv="0"`), "the first from the cache")
			assert.Equal(t, 4, strings.Count(calls, `rv=""`), "the others not")
			w.set(func(w *world) { assert.Equal(t, 4, w.unreachable, "from the second failure on") })
			assert.Empty(t, w.emitted(), "not reported yet")
			failing.Store(false)
			after(11 * time.Second)
			assert.Equal(t, []string{"Normal NodeHasInsufficientPID: Node n1 status is now: NodeHasInsufficientPID"}, w.emitted(), "one event")
		})
	})
}

func TestANodeIsReadyAsSoonAsItCanBe(t *testing.T) { // ns-7
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.health.Runtime = errors.New("container runtime is down")
		run(t, w, w.config(), func(*node.Node) {
			after(3 * time.Second)
			assert.Equal(t, v1.ConditionFalse, condition(w.object(), v1.NodeReady).Status)
			assert.Len(t, w.took(), 3, "nothing is written while it is not")
			w.set(func(w *world) {
				assert.InDelta(t, 29, w.refreshed, 2, "but checked ten times a second")
				w.health.Runtime = nil
			})
			after(200 * time.Millisecond)
			assert.Equal(t, v1.ConditionTrue, condition(w.object(), v1.NodeReady).Status)
			w.set(func(w *world) { assert.InDelta(t, 3.1, w.readyAfter.Seconds(), 0.2) })
			after(time.Minute)
			w.set(func(w *world) { assert.Less(t, w.refreshed, 35, "and no longer") })
		})
	})
}

func TestFastUpdatesEndAfterTwoMinutes(t *testing.T) { // ns-7
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.health.Network = errors.New("cni plugin not initialized")
		run(t, w, w.config(), func(*node.Node) {
			after(3 * time.Minute)
			w.set(func(w *world) { w.refreshed = 0; w.health.Network = nil })
			after(11 * time.Second)
			w.set(func(w *world) { assert.Zero(t, w.refreshed) })
			assert.Equal(t, v1.ConditionTrue, condition(w.object(), v1.NodeReady).Status)
		})
	})
}

func TestSettersRunInOrderAndOneThatFailsStopsNoOther(t *testing.T) { // ns-8
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := w.config()
		cfg.Setters = append([]node.Setter{{Name: "bad", Set: func(context.Context, *node.Draft) error { return errors.New("no") }}}, cfg.Setters...)
		run(t, w, cfg, func(*node.Node) {
			after(time.Second)
			assert.Equal(t, v1.ConditionTrue, condition(w.object(), v1.NodeReady).Status)
		})
	})
}

func TestCordoningIsReported(t *testing.T) { // ns-19
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, w.config(), func(*node.Node) {
			after(time.Second)
			w.emitted()
			w.change(func(n *v1.Node) { n.Spec.Unschedulable = true })
			after(11 * time.Second)
			assert.Equal(t, []string{"Normal NodeNotSchedulable: Node n1 status is now: NodeNotSchedulable"}, w.emitted())
			after(time.Minute)
			assert.Empty(t, w.emitted())
			w.change(func(n *v1.Node) { n.Spec.Unschedulable = false })
			after(11 * time.Second)
			assert.Equal(t, []string{"Normal NodeSchedulable: Node n1 status is now: NodeSchedulable"}, w.emitted())
		})
	})
}

func TestStatusFieldsOfOtherWritersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, w.config(), func(*node.Node) {
			after(time.Second)
			w.change(func(n *v1.Node) {
				n.Status.Conditions = append(n.Status.Conditions, v1.NodeCondition{Type: v1.NodeNetworkUnavailable, Status: v1.ConditionFalse, Reason: "RouteCreated"})
				n.Spec.Taints = []v1.Taint{{Key: "theirs", Effect: v1.TaintEffectNoSchedule}}
			})
			w.set(func(w *world) { w.pressure.Disk = true })
			after(11 * time.Second)
			assert.Equal(t, "RouteCreated", condition(w.object(), v1.NodeNetworkUnavailable).Reason)
			assert.Len(t, w.object().Spec.Taints, 1)
		})
	})
}

func TestTwoAddressesOfOneTypeBothStay(t *testing.T) { // ns-18
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var ips atomic.Pointer[[]string]
		ips.Store(&[]string{"10.0.0.1"})
		w.adjust = func(f *node.Facts) {
			f.Addresses = nil
			for _, ip := range *ips.Load() {
				f.Addresses = append(f.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
			}
			f.Addresses = append(f.Addresses, v1.NodeAddress{Type: v1.NodeHostName, Address: "n1"})
		}
		run(t, w, w.config(), func(*node.Node) {
			after(time.Second)
			for _, now := range [][]string{{"10.0.0.1", "fd00::1"}, {"fd00::1", "10.0.0.1"}, {"10.0.0.2"}} {
				ips.Store(&now)
				after(11 * time.Second)
				var got []string
				for _, a := range w.object().Status.Addresses {
					got = append(got, a.Address)
				}
				require.Equal(t, append(slices.Clone(now), "n1"), got)
			}
		})
	})
}

func TestAnExternalCloudProviderSetsTheAddresses(t *testing.T) {
	for _, tc := range []struct {
		name     string
		ips      []net.IP
		external bool
		first    []string // addresses before the cloud provider has set them
		provided string   // the annotation
	}{
		{name: "no configured address", external: true, first: []string{"n1"}},
		{name: "a configured address", ips: []net.IP{net.ParseIP("10.0.0.1")}, external: true, first: []string{"10.0.0.1", "n1"}, provided: "10.0.0.1"},
		{name: "no cloud provider", ips: []net.IP{net.ParseIP("10.0.0.1")}, first: []string{"10.0.0.1", "n1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				cfg := w.config()
				cloud := node.CloudProvider{External: tc.external}
				if len(tc.ips) > 0 {
					cloud.ProvidedNodeIP = tc.ips[0].String()
				}
				own, err := node.AddressConfig{NodeName: "n1", NodeIPs: tc.ips, Cloud: tc.external, Network: network{interfaces: tc.ips}}.Addresses(t.Context())
				require.NoError(t, err)
				w.adjust = func(f *node.Facts) { f.Addresses, f.CloudProvider = own, cloud }
				cfg.Spec.CloudProvider = cloud
				addresses := func() (out []string) {
					for _, a := range w.object().Status.Addresses {
						out = append(out, a.Address)
					}
					return out
				}
				run(t, w, cfg, func(*node.Node) {
					after(time.Second)
					assert.Equal(t, tc.first, addresses())
					assert.Equal(t, tc.provided, w.object().Annotations["alpha.kubernetes.io/provided-node-ip"])
					assert.Len(t, w.object().Spec.Taints, map[bool]int{true: 1}[tc.external])

					w.change(func(n *v1.Node) {
						n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.1.1.1"}}
						n.Annotations = map[string]string{"alpha.kubernetes.io/provided-node-ip": "10.9.9.9"}
					})
					after(6 * time.Minute)
					if tc.external {
						assert.Equal(t, []string{"10.1.1.1"}, addresses())
					} else {
						assert.Equal(t, tc.first, addresses())
					}
					assert.Equal(t, tc.provided, w.object().Annotations["alpha.kubernetes.io/provided-node-ip"])
				})
			})
		})
	}
}

func TestADeletedNodeObjectIsNotRecreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, w.config(), func(*node.Node) {
			after(time.Second)
			w.fakeAPI.mu.Lock()
			w.node = nil
			w.fakeAPI.mu.Unlock()
			w.took()
			after(time.Minute)
			calls := w.took()
			assert.LessOrEqual(t, len(calls), 30, "five tries a period")
			assert.NotContains(t, strings.Join(calls, "\n"), "create")
		})
	})
}

func TestChangedIgnoresHeartbeatsAndOrder(t *testing.T) { // ns-5
	at := func(sec int64, kinds ...v1.NodeConditionType) *v1.NodeStatus {
		s := &v1.NodeStatus{}
		for _, k := range kinds {
			c := v1.NodeCondition{Type: k, Status: v1.ConditionTrue}
			c.LastHeartbeatTime.Time = time.Unix(sec, 0)
			s.Conditions = append(s.Conditions, c)
		}
		return s
	}
	assert.False(t, node.Changed(at(1, "A", "B"), at(2, "B", "A")))
	assert.True(t, node.Changed(at(1, "A", "B"), at(1, "A")))
	b := at(1, "A")
	b.Conditions[0].Message = "x"
	assert.True(t, node.Changed(at(1, "A"), b))
	data, err := json.Marshal(at(1, "B", "A"))
	require.NoError(t, err)
	assert.Less(t, strings.Index(string(data), `"B"`), strings.Index(string(data), `"A"`), "the arguments are not changed")
}
