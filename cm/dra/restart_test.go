package dra_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/dra"
)

// dra-11
func TestAnAgentThatRestarts(t *testing.T) {
	w := newWorld(claim("a", "d", "p"))
	p := pod("p", "a")
	require.NoError(t, w.manager(t, nil).PrepareResources(t.Context(), p))
	w.took()
	m := w.manager(t, nil)
	assert.Equal(t, []string{"d/claim=a"}, devicesOf(t, m, p), "a container is restarted")
	assert.Empty(t, w.took())
	require.NoError(t, m.PrepareResources(t.Context(), p))
	assert.Equal(t, []string{"prepare d a"}, w.took(), "for a new sandbox, as the node may have been rebooted")

	w.disk.Record = nil
	m = w.manager(t, nil)
	assert.Equal(t, []string{"d/claim=a"}, devicesOf(t, m, p), "the checkpoint is lost")
	assert.Equal(t, []string{"prepare d a"}, w.took())
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))

	w.disk.Record = []byte("broken")
	m = w.manager(t, nil)
	assert.False(t, m.MayHaveResources("p"))
	assert.Equal(t, "broken", string(w.disk.Kept))
}

// dra-14: the earlier claim is unprepared when its pod is released.
func TestAClaimIsNotConfusedWithItsPredecessor(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*resourceapi.ResourceClaim)
		want   string
	}{
		"another object": {func(c *resourceapi.ResourceClaim) { c.UID = "new" },
			"ResourceClaim ns/a (new): old ResourceClaim with same name a and different UID uid-a still exists: it is not unprepared yet"},
		"another allocation": {func(c *resourceapi.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Device = "new" }, "is not unprepared yet"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(claim("a", "d", "p"))
			m := w.manager(t, nil)
			require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
			next := claim("a", "d", "q")
			tc.change(next)
			w.claims["a"] = next
			require.ErrorContains(t, m.PrepareResources(t.Context(), pod("q", "a")), tc.want)
			_ = m.Retain(t.Context(), func(uid types.UID) bool { return uid == "q" })
			m.Reconcile(t.Context())
			w.took()
			require.NoError(t, m.PrepareResources(t.Context(), pod("q", "a")))
			assert.Equal(t, []string{"prepare d a"}, w.took())
		})
	}
}

var errDead = errors.New("the agent is dead")

// dra-11: the agent dies before and after each access to a driver, the API server and the
// disk, at the first to the last of them, and starts again.
func TestAnAgentThatDiesBetweenAnyTwoCalls(t *testing.T) {
	a, b := pod("p", "own", "shared"), pod("q", "shared")
	for dies := range 200 {
		for _, after := range []bool{false, true} {
			w := newWorld(claim("own", "d1,d2", "p"), claim("shared", "d1", "p", "q"))
			n, dead, died := 0, false, false
			killer := &deathly{world: w, step: func() (before, afterwards bool) {
				if dead {
					return true, true
				}
				n++
				dead = !died && n-1 == dies
				return dead && !after, dead
			}}
			m := killer.manager(t)
			start := func(p *v1.Pod) error {
				if err := m.PrepareResources(t.Context(), p); err != nil {
					return err
				}
				ids, err := m.CDIDevices(t.Context(), p, &p.Spec.Containers[0])
				if err != nil {
					return err
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				for _, id := range ids {
					driver, name, _ := strings.Cut(id, "/claim=")
					assert.True(t, w.prepared[driver+"/uid-"+name], "%s is not prepared, dies at %d", id, dies)
					w.running[p.UID] = append(w.running[p.UID], "uid-"+name)
				}
				return nil
			}
			stop := func(p *v1.Pod) error {
				w.mu.Lock()
				delete(w.running, p.UID)
				w.mu.Unlock()
				return m.UnprepareResources(t.Context(), p.UID)
			}
			steps := []func() error{
				func() error { return start(a) }, func() error { return start(b) },
				func() error { return stop(a) }, func() error { return stop(b) },
			}
			for i, step := range steps {
				err := step()
				if dead {
					dead, died = false, true
					m = killer.manager(t)
					err = steps[i]()
				}
				require.NoError(t, err)
			}
			assert.Empty(t, w.state(), "no claim is leaked")
			again := w.manager(t, nil)
			for _, uid := range []types.UID{"p", "q"} {
				assert.False(t, again.MayHaveResources(uid))
			}
			if !died {
				require.Greater(t, dies, 10, "every access was tried")
				return
			}
		}
	}
	t.Fatal("there are more accesses than expected")
}

// A deathly world belongs to an agent that was killed: its accesses fail, and have no effect.
type deathly struct {
	*world
	mu   sync.Mutex
	step func() (before, after bool)
}

func (d *deathly) manager(t *testing.T) *dra.Manager {
	m, err := dra.New(dra.Config{Claims: d, Plugins: d, Store: d})
	require.NoError(t, err)
	return m
}

func (d *deathly) do(f func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, after := d.step()
	if before {
		return errDead
	}
	if err := f(); err != nil || !after {
		return err
	}
	return errDead
}

func (d *deathly) GetClaim(ctx context.Context, namespace, name string) (c *resourceapi.ResourceClaim, err error) {
	err = d.do(func() error { c, err = d.world.GetClaim(ctx, namespace, name); return err })
	return c, err
}

func (d *deathly) Prepare(ctx context.Context, driver string, claims []dra.ClaimRef) (r map[types.UID]dra.Prepared, err error) {
	err = d.do(func() error { r, err = d.world.Prepare(ctx, driver, claims); return err })
	return r, err
}

func (d *deathly) Unprepare(ctx context.Context, driver string, claims []dra.ClaimRef) (r map[types.UID]error, err error) {
	err = d.do(func() error { r, err = d.world.Unprepare(ctx, driver, claims); return err })
	return r, err
}

func (d *deathly) Save(record []byte) error {
	return d.do(func() error { return d.world.Save(record) })
}
