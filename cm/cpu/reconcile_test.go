package cpu_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
)

// containers implements cpu.Runtime.
type containers struct {
	list   func(context.Context) ([]cpu.Container, error)
	update func(context.Context, string, cpuset.CPUSet) error
	active func(types.UID) bool // nil: all are
}

func (c containers) Containers(ctx context.Context) ([]cpu.Container, error) { return c.list(ctx) }
func (c containers) Active(uid types.UID) bool                               { return c.active == nil || c.active(uid) }
func (c containers) UpdateCPUs(ctx context.Context, id string, cpus cpuset.CPUSet) error {
	return c.update(ctx, id, cpus)
}

// cpu-8, cpu-9: running containers are updated at once, and every 10 seconds.
func TestContainersAreUpdatedWithTheirCPUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards the variables that Run reads and the test writes
		change := func(do func()) { mu.Lock(); defer mu.Unlock(); do() }
		running := []cpu.Container{{PodUID: "a", Name: "c0", ID: "1"}, {PodUID: "s", Name: "c0", ID: "2"}}
		var updated []string
		var fail error
		active := map[types.UID]bool{"a": true, "s": true}
		var infos []cpu.ReconcileInfo
		m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Runtime: containers{
			list: func(context.Context) ([]cpu.Container, error) {
				mu.Lock()
				defer mu.Unlock()
				return running, nil
			},
			update: func(_ context.Context, id string, set cpuset.CPUSet) error {
				mu.Lock()
				defer mu.Unlock()
				updated = append(updated, id+"="+set.String())
				return fail
			},
			active: func(uid types.UID) bool { mu.Lock(); defer mu.Unlock(); return active[uid] },
		}, Hooks: cpu.Hooks{Reconciled: func(i cpu.ReconcileInfo) { change(func() { infos = append(infos, i) }) }}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		assert.Equal(t, []string{"1=0-7", "2=0-7"}, updated)
		change(func() { updated = nil })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		assert.Empty(t, updated, "they are up to date")

		change(func() { fail = errors.New("it hangs") })
		require.NoError(t, allocate(t, m, pod("a", "2")))
		synctest.Wait()
		assert.Equal(t, []string{"1=1,5", "2=0,2-4,6-7"}, updated, "at once")
		assert.Equal(t, 2, infos[len(infos)-1].Stale)
		change(func() { fail, updated = nil, nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"1=1,5", "2=0,2-4,6-7"}, updated, "again")
		assert.Equal(t, 2, infos[len(infos)-1].Updated)

		change(func() { active["a"], running, updated = false, running[1:], nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"2=0-7"}, updated, "cpu-8: a is not active")
		cancel()
		require.NoError(t, <-done)
	})
}

// Without a policy, containers that an earlier policy has pinned run on any CPU again; an
// agent that stops before all are updated updates them after its restart.
func TestNonePutsBackWhatStaticHasPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0")})
		require.NoError(t, allocate(t, m, pod("a", "2")))
		store := &state.Memory{Record: m.State().Encode()}
		updated, fail := map[string]string{}, errors.New("it hangs")
		cfg := cpu.Config{Machine: topologytest.Machine(t, "desktop-1s"), Store: store, Running: []cpu.Running{
			{PodUID: "a", Container: "c0", CPUs: cpus(t, "1,5"), Exclusive: true},
			{PodUID: "s", Container: "c0", CPUs: cpus(t, "0,2-4,6-7")},
			{PodUID: "free", Container: "c0", CPUs: cpus(t, "0-7")},
			{PodUID: "unknown", Container: "c0"},
		}, Runtime: containers{
			list: func(context.Context) ([]cpu.Container, error) {
				return []cpu.Container{
					{PodUID: "a", Name: "c0", ID: "1"}, {PodUID: "s", Name: "c0", ID: "2"}, {PodUID: "free", Name: "c0", ID: "3"},
					{PodUID: "unknown", Name: "c0", ID: "4"}, {PodUID: "new", Name: "c0", ID: "5"},
				}, nil
			},
			update: func(_ context.Context, id string, set cpuset.CPUSet) error {
				if id == "2" && fail != nil {
					return fail
				}
				updated[id] = set.String()
				return nil
			},
		}}
		m, err := cpu.Open(cfg)
		require.NoError(t, err)
		require.ErrorContains(t, m.Reconcile(t.Context()), `container "c0" of pod s: it hangs`)
		assert.Contains(t, string(store.Record), `"static"`, "not all containers are updated yet")
		m, err = cpu.Open(cfg) // the agent restarts
		require.NoError(t, err)
		fail = nil
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		synctest.Wait()
		assert.Equal(t, map[string]string{"1": "0-7", "2": "0-7", "4": "0-7"}, updated, "at once")
		assert.Equal(t, `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`, string(store.Record))
		assert.NotNil(t, store.Kept)
		clear(updated)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Empty(t, updated, "once")
		cancel()
		require.NoError(t, <-done)
	})
}

func TestNoneDoesNotMoveContainers(t *testing.T) {
	file := filepath.Join(t.TempDir(), cpu.StateFile)
	m, err := cpu.Open(cpu.Config{Machine: topologytest.Machine(t, "desktop-1s"), Store: state.File(file)})
	require.NoError(t, err)
	require.NoError(t, allocate(t, m, pod("a", "2")))
	assert.Equal(t, "shared ", has(m, "a", "c0"))
	assert.Nil(t, m.Hints(pod("a", "2"), nil))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`, string(data))
	_, err = cpu.Open(cpu.Config{})
	require.EqualError(t, err, "cpu: Config.Machine is nil")
	_, err = cpu.Open(cpu.Config{Machine: topologytest.Machine(t, "desktop-1s"), Policy: "some"})
	require.EqualError(t, err, `cpu: unknown policy: "some"`)
}
