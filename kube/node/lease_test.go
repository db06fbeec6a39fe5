package node_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/node"
)

func leaseOnly(w *world) node.Config {
	cfg := w.config()
	cfg.Leases = fakeLeases{w.fakeAPI}
	return cfg
}

// of returns the calls about leases, without their times.
func of(calls []string) (out []string) {
	for _, c := range calls {
		if _, call, _ := strings.Cut(c, " "); strings.HasSuffix(call, "lease") {
			out = append(out, call)
		}
	}
	return out
}

func TestALeaseIsMadeForTheNodeAndRenewed(t *testing.T) { // ls-1, ls-2
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, leaseOnly(w), func(n *node.Node) {
			after(time.Second)
			lease := w.held()
			require.NotNil(t, lease)
			assert.Equal(t, "n1", lease.Name)
			assert.Equal(t, "kube-node-lease", lease.Namespace)
			assert.Equal(t, "n1", *lease.Spec.HolderIdentity)
			assert.EqualValues(t, 40, *lease.Spec.LeaseDurationSeconds)
			owner, _ := n.Owner()
			assert.Equal(t, []metav1.OwnerReference{owner}, lease.OwnerReferences)
			w.took()
			after(5 * time.Minute)
			calls := of(w.took())
			assert.InDelta(t, 29, len(calls), 2, "every 10 s, jittered")
			for _, c := range calls {
				assert.Equal(t, "update lease", c, "it is not read")
			}
			assert.Less(t, time.Since(w.held().Spec.RenewTime.Time), 11*time.Second)
		})
	})
}

func TestALeaseChangedByAnotherClientIsReadAgain(t *testing.T) { // ls-2
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, leaseOnly(w), func(*node.Node) {
			after(time.Second)
			w.took()
			w.fakeAPI.mu.Lock()
			w.lease.ResourceVersion, w.lease.Spec.HolderIdentity = "999", new("thief")
			w.fakeAPI.mu.Unlock()
			after(10500 * time.Millisecond)
			assert.Equal(t, []string{"update lease", "get lease", "update lease"}, of(w.took()))
			assert.Equal(t, "n1", *w.held().Spec.HolderIdentity)

			w.fakeAPI.mu.Lock()
			w.lease = nil
			w.fakeAPI.mu.Unlock()
			after(10500 * time.Millisecond)
			assert.Equal(t, []string{"update lease", "get lease", "create lease"}, of(w.took()))
		})
	})
}

func TestARenewalIsTriedFiveTimes(t *testing.T) { // ls-2, ls-3
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var failing atomic.Bool
		w.fail = func(call string) error {
			if failing.Load() && strings.HasSuffix(call, "lease") {
				return errors.New("connection refused")
			}
			return nil
		}
		run(t, w, leaseOnly(w), func(*node.Node) {
			after(time.Second)
			w.took()
			failing.Store(true)
			after(20 * time.Second)
			calls := of(w.took())
			assert.Equal(t, []string{"update lease", "update lease", "update lease", "update lease", "update lease", "get lease"}, calls[:6])
			assert.Less(t, len(calls), 15, "then with back-off")
			w.set(func(w *world) { assert.Equal(t, 4, w.unreachable) })
			failing.Store(false)
			after(8 * time.Second)
			assert.Less(t, time.Since(w.held().Spec.RenewTime.Time), 9*time.Second)
		})
	})
}

func TestTheLeaseIsRenewedWhileTheStatusIsNot(t *testing.T) { // ls-4
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var failing atomic.Bool
		w.fail = func(call string) error {
			if failing.Load() && strings.Contains(call, "node") {
				return errors.New("boom")
			}
			return nil
		}
		run(t, w, leaseOnly(w), func(*node.Node) {
			after(time.Second)
			failing.Store(true)
			after(time.Minute)
			assert.Less(t, time.Since(w.held().Spec.RenewTime.Time), 11*time.Second)
		})
	})
}

func TestThereIsNoLeaseBeforeTheNode(t *testing.T) { // ls-1
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var notYet atomic.Bool
		notYet.Store(true)
		w.fail = func(call string) error {
			if call == "create node" && notYet.Load() {
				return errors.New("not yet")
			}
			return nil
		}
		run(t, w, leaseOnly(w), func(*node.Node) {
			after(10 * time.Second)
			assert.Nil(t, w.held(), "nothing would ever remove it")
			notYet.Store(false)
			after(15 * time.Second)
			assert.NotEmpty(t, w.held().OwnerReferences)
		})
	})
}

// A node that is being deleted, and waits for a finalizer, gets no new lease; nor is
// the lease polled without a pause.
func TestADeletedNodeIsPolledWithAPause(t *testing.T) { // ls-1, ls-3
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var gets atomic.Int64
		w.fail = func(call string) error {
			if call == "get lease" && gets.Add(1) > 1000 {
				time.Sleep(time.Hour) // a hot loop
			}
			return nil
		}
		run(t, w, leaseOnly(w), func(*node.Node) {
			after(time.Second)
			w.fakeAPI.change(func(n *v1.Node) { n.DeletionTimestamp, n.Finalizers = new(metav1.Now()), []string{"example.com/drain"} })
			after(11 * time.Second) // it is seen
			w.fakeAPI.mu.Lock()
			w.lease = nil
			w.fakeAPI.mu.Unlock()
			gets.Store(0)
			after(5 * time.Minute)
			assert.Nil(t, w.held())
			assert.Less(t, gets.Load(), int64(60))
			w.fakeAPI.change(func(n *v1.Node) { n.DeletionTimestamp, n.Finalizers = nil, nil })
			after(20 * time.Second)
			assert.NotNil(t, w.held(), "it exists again")
		})
	})
}

func TestRenewKeepsFieldsOfOthers(t *testing.T) { // ls-1
	now := time.Unix(1000, 0)
	last := &coordinationv1.Lease{}
	last.ResourceVersion, last.Labels = "7", map[string]string{"a": "b"}
	last.OwnerReferences = []metav1.OwnerReference{{Name: "other"}}
	last.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other"}}
	before := last.DeepCopy()
	got := node.Renew(last, "n1", 40*time.Second, &metav1.OwnerReference{Name: "n1"}, now)
	assert.Equal(t, "7", got.ResourceVersion)
	assert.Equal(t, "other", got.OwnerReferences[0].Name)
	assert.Equal(t, now, got.Spec.RenewTime.Time)
	assert.Empty(t, got.ManagedFields, "the API server keeps them")
	assert.Equal(t, before, last, "the previous object is not changed")
	assert.Empty(t, node.Renew(nil, "n1", time.Minute, nil, now).OwnerReferences)
}

// A lease whose owner does not exist is garbage collected at once, and would be created again
// and again.
func TestADeletedNodeHasNoLease(t *testing.T) { // ls-1
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, leaseOnly(w), func(n *node.Node) {
			after(time.Second)
			old, ok := n.Owner()
			require.True(t, ok)
			w.took()
			w.fakeAPI.mu.Lock()
			w.node, w.lease = nil, nil
			w.fakeAPI.mu.Unlock()
			after(5 * time.Minute)
			assert.NotContains(t, of(w.took()), "create lease")
			_, ok = n.Owner()
			assert.False(t, ok, "mirror pods have no owner either")
			assert.NotNil(t, n.Object(), "the last one")

			w.fakeAPI.mu.Lock()
			w.node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "another"}}
			w.fakeAPI.mu.Unlock()
			after(20 * time.Second)
			owner, ok := n.Owner()
			require.True(t, ok)
			assert.NotEqual(t, old, owner)
			require.NotNil(t, w.held())
			assert.Equal(t, []metav1.OwnerReference{owner}, w.held().OwnerReferences)
		})
	})
}

func TestAMissingNodeIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := leaseOnly(w)
		var missing atomic.Int32
		cfg.Observed = func(n *v1.Node) {
			if n == nil {
				missing.Add(1)
			}
		}
		run(t, w, cfg, func(*node.Node) {
			after(time.Second)
			assert.Zero(t, missing.Load())
			w.fakeAPI.mu.Lock()
			w.node = nil
			w.fakeAPI.mu.Unlock()
			after(5 * time.Minute)
			assert.EqualValues(t, 1, missing.Load(), "once")
		})
	})
}
