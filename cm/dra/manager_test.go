package dra_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/state"
)

// A world has the claims, the drivers and the disk of a node.
type world struct {
	mu       sync.Mutex
	claims   map[string]*resourceapi.ResourceClaim // by name
	absent   map[string]bool                       // drivers that are not registered
	prepared map[string]bool                       // "driver/claim UID"
	calls    []string
	disk     state.Memory
	running  map[types.UID][]string // UIDs of the claims of running pods

	fault func(ctx context.Context, call string) error // of drivers and disk; nil: none
	wrong map[types.UID]dra.Prepared                   // instead of the response of d1
}

func newWorld(claims ...*resourceapi.ResourceClaim) *world {
	w := &world{claims: map[string]*resourceapi.ResourceClaim{}, absent: map[string]bool{}, prepared: map[string]bool{}, running: map[types.UID][]string{}}
	for _, c := range claims {
		w.claims[c.Name] = c
	}
	return w
}

func (w *world) check(ctx context.Context, call string) error {
	w.mu.Lock()
	f := w.fault
	w.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(ctx, call)
}

func (w *world) GetClaim(ctx context.Context, _, name string) (*resourceapi.ResourceClaim, error) {
	if err := w.check(ctx, "get "+name); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ok := w.claims[name]
	if !ok {
		return nil, fmt.Errorf("resourceclaims %q not found", name)
	}
	return c.DeepCopy(), nil
}

func (w *world) Registered(driver string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.absent[driver]
}

func refs(claims []dra.ClaimRef) string {
	var names []string
	for _, c := range claims {
		names = append(names, c.Name)
	}
	return strings.Join(names, ",")
}

func (w *world) Prepare(ctx context.Context, driver string, claims []dra.ClaimRef) (map[types.UID]dra.Prepared, error) {
	call := "prepare " + driver + " " + refs(claims)
	if err := w.check(ctx, call); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
	out := map[types.UID]dra.Prepared{}
	for _, c := range claims {
		w.prepared[driver+"/"+string(c.UID)] = true
		out[c.UID] = dra.Prepared{Devices: []dra.Device{{Pool: "pool", Name: c.Name, CDI: []string{driver + "/claim=" + c.Name}}}}
	}
	if w.wrong != nil && driver == "d1" {
		return w.wrong, nil
	}
	return out, nil
}

func (w *world) Unprepare(ctx context.Context, driver string, claims []dra.ClaimRef) (map[types.UID]error, error) {
	call := "unprepare " + driver + " " + refs(claims)
	if err := w.check(ctx, call); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
	out := map[types.UID]error{}
	for _, c := range claims {
		for uid, uses := range w.running {
			if slices.Contains(uses, string(c.UID)) {
				panic(fmt.Sprintf("claim %s is unprepared while pod %s runs", c, uid))
			}
		}
		delete(w.prepared, driver+"/"+string(c.UID))
		out[c.UID] = nil
	}
	return out, nil
}

func (w *world) Load() ([]byte, error) { return w.disk.Load() }
func (w *world) Keep() error           { return w.disk.Keep() }
func (w *world) Save(record []byte) error {
	if err := w.check(context.Background(), "save"); err != nil {
		return err
	}
	return w.disk.Save(record)
}

func (w *world) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

func (w *world) state() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.prepared))
}

func (w *world) manager(t *testing.T, change func(*dra.Config)) *dra.Manager {
	t.Helper()
	cfg := dra.Config{Claims: w, Plugins: w, Store: w}
	if change != nil {
		change(&cfg)
	}
	m, err := dra.New(cfg)
	require.NoError(t, err)
	return m
}

// claim returns a claim that is allocated by the drivers and reserved for the pods.
func claim(name, drivers string, pods ...types.UID) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for driver := range strings.SplitSeq(drivers, ",") {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: "pool", Device: name})
	}
	for _, uid := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: string(uid), UID: uid})
	}
	return c
}

// pod returns a pod with one container that uses the claims.
func pod(uid types.UID, claims ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(uid), UID: uid}}
	p.Spec.Containers = []v1.Container{{Name: "c"}}
	for _, name := range claims {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: name, ResourceClaimName: new(name)})
		p.Spec.Containers[0].Resources.Claims = append(p.Spec.Containers[0].Resources.Claims, v1.ResourceClaim{Name: name})
	}
	return p
}

func devicesOf(t *testing.T, m *dra.Manager, p *v1.Pod) []string {
	t.Helper()
	ids, err := m.CDIDevices(t.Context(), p, &p.Spec.Containers[0])
	require.NoError(t, err)
	return ids
}

// dra-1, dra-2
func TestClaimsArePreparedInOneCallPerDriver(t *testing.T) {
	w := newWorld(claim("a", "d1", "p"), claim("b", "d1,d2", "p"))
	var operations []string
	m := w.manager(t, func(c *dra.Config) {
		c.Hooks.Operated = func(i dra.OperationInfo) {
			operations = append(operations, fmt.Sprint(i.Type, " ", i.PodUID, " ", i.Err))
		}
	})
	p := pod("p", "a", "b")
	require.NoError(t, m.PrepareResources(t.Context(), p))
	assert.ElementsMatch(t, []string{"prepare d1 a,b", "prepare d2 b"}, w.took())
	assert.Equal(t, []string{"d1/claim=a", "d1/claim=b", "d2/claim=b"}, devicesOf(t, m, p))
	assert.True(t, m.MayHaveResources("p"))
	all, byDriver := m.InUse()
	assert.Equal(t, 2, all)
	assert.Equal(t, map[string]int{"d1": 2, "d2": 1}, byDriver)
	assert.Equal(t, []types.UID{"p"}, m.Pods("d2"))
	require.NoError(t, m.PrepareResources(t.Context(), p), "a new sandbox")
	assert.Empty(t, w.took())

	w.claims = nil // deleted by force
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.ElementsMatch(t, []string{"unprepare d1 a,b", "unprepare d2 b"}, w.took())
	assert.False(t, m.MayHaveResources("p"))
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.Empty(t, w.took())
	assert.Equal(t, []string{"PrepareResources p <nil>", "PrepareResources p <nil>", "UnprepareResources p <nil>"}, operations)
	require.NoError(t, m.PrepareResources(t.Context(), pod("q")), "without claims")
}

// dra-2
func TestASharedClaimIsPreparedOnceAndUnpreparedWithItsLastPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(claim("a", "d", "p", "q"))
		w.fault = func(ctx context.Context, call string) error {
			if strings.HasPrefix(call, "prepare") {
				time.Sleep(time.Second)
			}
			return nil
		}
		m := w.manager(t, nil)
		var wg sync.WaitGroup
		for _, uid := range []types.UID{"p", "q"} {
			wg.Go(func() { assert.NoError(t, m.PrepareResources(t.Context(), pod(uid, "a"))) })
		}
		wg.Wait()
		assert.Equal(t, []string{"prepare d a"}, w.took())
		require.NoError(t, m.UnprepareResources(t.Context(), "p"))
		assert.Empty(t, w.took())
		assert.Equal(t, []string{"d/claim=a"}, devicesOf(t, m, pod("q", "a")))
		require.NoError(t, m.UnprepareResources(t.Context(), "q"))
		assert.Equal(t, []string{"unprepare d a"}, w.took())
	})
}

// dra-3
func TestAPodWhoseClaimsCannotBePreparedDoesNotStart(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*world)
		err    string
		calls  []string
		holds  bool // drivers may have been called
	}{
		"missing":         {func(w *world) { delete(w.claims, "b") }, `get ResourceClaim ns/b: resourceclaims "b" not found`, nil, false},
		"not reserved":    {func(w *world) { w.claims["b"].Status.ReservedFor = nil }, "pod ns/p (p) is not allowed to use ResourceClaim ns/b (uid-b)", nil, false},
		"another object":  {func(w *world) { w.claims["b"] = claim("a", "d", "p") }, "another object was returned", nil, false},
		"no driver":       {func(w *world) { w.absent["d2"] = true }, "prepare dynamic resources: DRA driver d2 is not registered", nil, false},
		"disk":            {func(w *world) { w.fault = failing("save") }, "save checkpoint: broken", nil, false},
		"driver fails":    {func(w *world) { w.fault = failing("prepare d2 b") }, "NodePrepareResources of driver d2: broken", []string{"prepare d1 a"}, true},
		"claim fails":     {func(w *world) { w.wrong = map[types.UID]dra.Prepared{"uid-a": {Err: errors.New("broken")}} }, "NodePrepareResources of driver d1 failed for ResourceClaim ns/a: broken", nil, true},
		"result missing":  {func(w *world) { w.wrong = map[types.UID]dra.Prepared{} }, "NodePrepareResources of driver d1: no result for ResourceClaim ns/a (uid-a)", nil, true},
		"driver has gone": {func(w *world) { w.fault = returning("prepare d", dra.ErrNotRegistered) }, "DRA driver d1 is not registered", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(claim("a", "d1", "p"), claim("b", "d2", "p"))
			tt.change(w)
			m := w.manager(t, nil)
			p := pod("p", "a", "b")
			err := m.PrepareResources(t.Context(), p)
			require.ErrorContains(t, err, tt.err)
			if tt.calls != nil {
				assert.Equal(t, tt.calls, w.took())
			}
			_, err = m.CDIDevices(t.Context(), p, &p.Spec.Containers[0])
			require.Error(t, err, "no container starts")
			if !tt.holds {
				require.NoError(t, m.UnprepareResources(t.Context(), "p"), "the pod terminates although no driver was called")
				assert.NotContains(t, strings.Join(w.took(), " "), "unprepare")
				return
			}
			assert.True(t, m.MayHaveResources("p"))
			w.fault, w.wrong = nil, nil
			require.NoError(t, m.PrepareResources(t.Context(), p), "a retry")
			assert.Equal(t, []string{"d1/claim=a", "d2/claim=b"}, devicesOf(t, m, p))
			require.NoError(t, m.UnprepareResources(t.Context(), "p"))
			assert.Empty(t, w.state())
		})
	}
}

func failing(prefix string) func(context.Context, string) error {
	return returning(prefix, errors.New("broken"))
}

func returning(prefix string, err error) func(context.Context, string) error {
	return func(_ context.Context, call string) error {
		if strings.HasPrefix(call, prefix) {
			return err
		}
		return nil
	}
}

// dra-2: a driver that has failed must unprepare, also if it was not registered at the next
// attempt.
func TestADriverThatFailedAndWentIsCalledForUnprepare(t *testing.T) {
	w := newWorld(claim("a", "d", "p"))
	m := w.manager(t, nil)
	w.fault = failing("prepare")
	require.Error(t, m.PrepareResources(t.Context(), pod("p", "a")))
	w.fault = returning("prepare", dra.ErrNotRegistered)
	require.ErrorIs(t, m.PrepareResources(t.Context(), pod("p", "a")), dra.ErrNotRegistered)
	w.fault = nil
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.Equal(t, []string{"unprepare d a"}, w.took())
}

// dra-1: another driver is not called again, and is not delayed.
func TestADriverThatHangsIsCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(claim("a", "d1,d2", "p"))
		w.fault = func(ctx context.Context, call string) error {
			if strings.HasPrefix(call, "prepare d1") {
				<-ctx.Done()
				return errors.New("rpc error")
			}
			return nil
		}
		m := w.manager(t, nil)
		began := time.Now()
		err := m.PrepareResources(t.Context(), pod("p", "a"))
		require.ErrorContains(t, err, "NodePrepareResources of driver d1: DRA driver d1 has not responded within 45s")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 45*time.Second, time.Since(began))
		assert.Equal(t, []string{"prepare d2 a"}, w.took())
		w.fault = nil
		require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
		assert.Equal(t, []string{"prepare d1 a"}, w.took())
	})
}

// A pod that waits for the claim of another one stops waiting when it is deleted.
func TestWaitingForAClaimEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(claim("a", "d", "p", "q"))
		hang := make(chan struct{})
		w.fault = func(context.Context, string) error { <-hang; return nil }
		m := w.manager(t, nil)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, m.PrepareResources(t.Context(), pod("p", "a"))) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, m.PrepareResources(ctx, pod("q", "a")), context.DeadlineExceeded)
		close(hang)
		wg.Wait()
		require.NoError(t, m.PrepareResources(t.Context(), pod("q", "a")))
	})
}

// dra-2
func TestADriverThatIsNotThereDelaysTermination(t *testing.T) {
	w := newWorld(claim("a", "d1,d2", "p"))
	m := w.manager(t, nil)
	require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
	w.fault = returning("unprepare d1", dra.ErrNotRegistered)
	require.EqualError(t, m.UnprepareResources(t.Context(), "p"), "unprepare dynamic resources: DRA driver d1 is not registered")
	assert.True(t, m.MayHaveResources("p"))
	w.took()
	w.fault = nil
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.Equal(t, []string{"unprepare d1 a"}, w.took(), "d2 has unprepared it")
}

// dra-2, dra-13
func TestClaimsOfRemovedPodsAreUnprepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(claim("a", "d", "p"), claim("b", "d", "q"))
		m := w.manager(t, nil)
		require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
		require.NoError(t, m.PrepareResources(t.Context(), pod("q", "b")))
		w.took()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, m.Run(ctx)) })
		time.Sleep(time.Hour)
		assert.Empty(t, w.took(), "no pod is released")
		w.mu.Lock()
		w.fault = failing("unprepare")
		w.mu.Unlock()
		m.Retain(func(uid types.UID) bool { return uid == "q" })
		synctest.Wait()
		assert.True(t, m.MayHaveResources("p"))
		w.mu.Lock()
		w.fault = nil
		w.mu.Unlock()
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"unprepare d a"}, w.took(), "a retry")
		cancel()
		wg.Wait()
		require.ErrorContains(t, m.Run(ctx), "dra: Manager.Run was called before")
	})
}

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
	for name, change := range map[string]func(*resourceapi.ResourceClaim){
		"another object":     func(c *resourceapi.ResourceClaim) { c.UID = "new" },
		"another allocation": func(c *resourceapi.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Device = "new" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(claim("a", "d", "p"))
			m := w.manager(t, nil)
			require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
			next := claim("a", "d", "q")
			change(next)
			w.claims["a"] = next
			require.ErrorContains(t, m.PrepareResources(t.Context(), pod("q", "a")), "is not unprepared yet")
			m.Retain(func(uid types.UID) bool { return uid == "q" })
			m.Reconcile(t.Context())
			w.took()
			require.NoError(t, m.PrepareResources(t.Context(), pod("q", "a")))
			assert.Equal(t, []string{"prepare d a"}, w.took())
		})
	}
}

// dra-7
func TestCallsThatAreNotNecessaryAreSkipped(t *testing.T) {
	c := claim("a", "d", "p")
	c.Status.Allocation.Devices.Results[0].SkipNodeOperations = []resourceapi.SkipNodeOperation{"*"}
	w := newWorld(c)
	w.absent["d"] = true
	var skipped []string
	m := w.manager(t, func(c *dra.Config) {
		c.Hooks.Skipped = func(i dra.SkipInfo) { skipped = append(skipped, i.Driver+" "+i.Method) }
	})
	p := pod("p", "a")
	require.NoError(t, m.PrepareResources(t.Context(), p))
	require.NoError(t, m.PrepareResources(t.Context(), p))
	assert.Empty(t, devicesOf(t, m, p))
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.Equal(t, []string{"d NodePrepareResources", "d NodeUnprepareResources"}, skipped)
	assert.Empty(t, w.took())
	assert.False(t, m.MayHaveResources("p"))
}

// dra-11
func TestAnUnpreparedClaimWhoseCheckpointCannotBeWritten(t *testing.T) {
	w := newWorld(claim("a", "d", "p"))
	m := w.manager(t, nil)
	require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
	w.fault = failing("save")
	require.NoError(t, m.UnprepareResources(t.Context(), "p"), "the pod terminates")
	w.fault, w.calls = nil, nil
	m = w.manager(t, nil)
	assert.True(t, m.MayHaveResources("p"), "the old checkpoint")
	m.Retain(func(types.UID) bool { return false })
	m.Reconcile(t.Context())
	assert.Equal(t, []string{"unprepare d a"}, w.took())
	assert.False(t, w.manager(t, nil).MayHaveResources("p"))
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

// A deathly world is that of an agent that dies: its accesses fail, and have no effect.
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

func TestConfigurationsThatCannotWork(t *testing.T) {
	w := newWorld()
	for want, cfg := range map[string]dra.Config{
		"dra: Config.Claims is nil":                             {Plugins: w, Store: w},
		"dra: Config.Plugins is nil":                            {Claims: w, Store: w},
		"dra: Config.Store is nil":                              {Claims: w, Plugins: w},
		"dra: Config.CallTimeout or Config.Period is negative":  {Claims: w, Plugins: w, Store: w, CallTimeout: -1},
		"dra: Config.CallTimeout or Config.Period is negative ": {Claims: w, Plugins: w, Store: w, Period: -1},
	} {
		_, err := dra.New(cfg)
		require.EqualError(t, err, strings.TrimSpace(want))
	}
}

// dra-12
func TestHealthOfThePodsDevices(t *testing.T) {
	w := newWorld(claim("a", "d", "p"))
	m := w.manager(t, nil)
	p := pod("p", "a")
	p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "other"})
	health := func(driver, pool, device string) (v1.ResourceHealthStatus, string) {
		return v1.ResourceHealthStatusUnhealthy, driver + " is hot"
	}
	assert.Nil(t, m.Health(p, health), "not prepared")
	require.NoError(t, m.PrepareResources(t.Context(), p))
	assert.Equal(t, map[string][]v1.ResourceStatus{"c": {{Name: "claim:a", Resources: []v1.ResourceHealth{
		{ResourceID: "d/pool/a", Health: v1.ResourceHealthStatusUnhealthy, Message: new("d is hot")},
	}}}}, m.Health(p, health))
}

// pr-2
func TestUsedDevicesOfAContainer(t *testing.T) {
	w := newWorld(claim("a", "d1,d2", "p"))
	m := w.manager(t, nil)
	p := pod("p", "a")
	c := &p.Spec.Containers[0]
	assert.Empty(t, m.UsedDevices(p, c))
	require.NoError(t, m.PrepareResources(t.Context(), p))
	all := m.UsedDevices(p, c)
	require.Len(t, all, 2)
	assert.Equal(t, "ns/a d1", all[0].Claim.String()+" "+all[0].Driver)
	assert.Equal(t, []string{"d1/claim=a"}, all[0].CDI)
	assert.Equal(t, "d2", all[1].Driver)
}

// dra-2: the driver may have unprepared the claim though its response was lost.
func TestAClaimIsPreparedAgainAfterAFailedUnprepare(t *testing.T) {
	w := newWorld(claim("a", "d", "p", "q"))
	m := w.manager(t, nil)
	require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
	w.fault = failing("unprepare")
	require.Error(t, m.UnprepareResources(t.Context(), "p"))
	w.fault = nil
	w.took()
	require.NoError(t, m.PrepareResources(t.Context(), pod("q", "a")))
	assert.Equal(t, []string{"prepare d a"}, w.took())
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.Empty(t, w.took(), "the other pod uses it")
}
