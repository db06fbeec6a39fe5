package apitest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeparts/kubeparts/internal/seedrun"
)

// Leases change at random; each renewal must have the managed fields of the field manager.
func TestRenewalEqualsTheFieldManager(t *testing.T) {
	synctest.Test(t, renewalEqualsTheFieldManager)
}

func renewalEqualsTheFieldManager(t *testing.T) {
	seed := seedrun.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := new(Server)
	s.mu.Lock()
	k := s.kindsLocked()[schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}]
	s.mu.Unlock()
	write := func(manager string) *request {
		return &request{Call: Call{Verb: "update", Resource: "leases", UserAgent: manager + "/1"}, kind: k, gvk: k.stored()}
	}
	first := k.make("v1").(*coordinationv1.Lease)
	first.Name, first.Namespace = "n", "ns"
	was, err := s.track(write("a"), nil, first)
	require.NoError(t, err)
	short, long := 0, 0
	for i := range 2000 {
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
		next := received(t, was)
		next.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(int64(i), 0)}
		switch rnd.IntN(12) {
		case 0:
			next.Spec.HolderIdentity = new(fmt.Sprint(rnd.IntN(2)))
		case 1:
			next.Labels = map[string]string{[]string{"renewTime", "app"}[rnd.IntN(2)]: fmt.Sprint(rnd.IntN(2))}
		case 2:
			next.Spec.RenewTime = nil
		case 3:
			next.Labels = nil
		case 4:
			next.ManagedFields = nil // as of a client that does not keep it
		case 5:
			next.ManagedFields = []metav1.ManagedFieldsEntry{{}} // resets it
		case 6:
			next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "1"}}
		}
		r := write([]string{"a", "a", "a", "a", "b"}[rnd.IntN(5)])
		m, err := s.manager(k, r.gvk, "")
		require.NoError(t, err)
		want := m.UpdateNoErrors(was.DeepCopyObject(), next.DeepCopy(), r.fieldManager()).(*coordinationv1.Lease)
		if got, ok := r.renewal(was, next); ok {
			short++
			assert.True(t, sameEntries(want.ManagedFields, got), "step %d: want %v, got %v", i, want.ManagedFields, got)
			for j, e := range got {
				assert.Equal(t, want.ManagedFields[j].Time.Unix(), e.Time.Unix(), "step %d", i)
			}
		} else {
			long++
		}
		if t.Failed() {
			return
		}
		was = want
	}
	assert.Greater(t, short, 200, "renewals that the field manager does not see")
	assert.Greater(t, long, 200)
}

// received returns a lease as a client sends it.
func received(t *testing.T, o object) *coordinationv1.Lease {
	data, err := o.(*coordinationv1.Lease).Marshal()
	require.NoError(t, err)
	lease := new(coordinationv1.Lease)
	require.NoError(t, lease.Unmarshal(data))
	lease.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	return lease
}
