package cm_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// A slow is a tree in which removals take a while.
type slow struct {
	*cgroups.Tree
	removed atomic.Int32
}

func (s *slow) Remove(ctx context.Context, name cgroups.Name) error {
	time.Sleep(time.Second)
	s.removed.Add(1)
	return s.Tree.Remove(ctx, name)
}

// A removal waits for the earlier ones, each of which may wait for processes: a static
// pod may be desired again under its UID by then, and run.
func TestAPodThatIsDesiredAgainKeepsItsCgroup(t *testing.T) { // cm-44, hk-2
	synctest.Test(t, func(t *testing.T) {
		tree := &slow{Tree: cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: every})}
		m, err := cm.New(cm.Config{Tree: tree, Capacity: list("cpu=4")})
		require.NoError(t, err)
		require.NoError(t, m.Setup(t.Context()))
		for i := range 20 {
			require.NoError(t, m.Ensure(t.Context(), pod(fmt.Sprintf("p-%02d", i), burstable)))
		}
		keep := func(uid types.UID) bool { return uid >= "p-08" && tree.removed.Load() > 0 }
		require.NoError(t, m.Retain(t.Context(), keep))
		left, err := m.Pods()
		require.NoError(t, err)
		assert.Len(t, left, 12)
		assert.Contains(t, left, types.UID("p-08"))
	})
}

// A pod that can't have a cgroup can be removed: otherwise its cleanup would never
// complete.
func TestAPodWhoseUIDIsNoNameCanBeRemoved(t *testing.T) { // cm-6
	n := newNode(t, cm.Config{})
	require.NoError(t, n.Setup(t.Context()))
	for _, uid := range []string{"a_b", "../x"} {
		p := pod(uid, burstable)
		require.ErrorIs(t, n.Ensure(t.Context(), p), cgroups.ErrBadName)
		require.NoError(t, n.Remove(t.Context(), p.UID))
	}
	require.NoError(t, n.Sync(t.Context()))
	assert.EqualValues(t, 1, *n.has(t, "/kubepods/burstable").CPUWeight, "nothing is left of their requests")
}
