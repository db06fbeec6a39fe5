package device_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/device/devicetest"
	"github.com/kubeparts/kubeparts/cm/state"
)

// A disk is a store whose writes block while hold is in effect, and fail while fails returns true.
type disk struct {
	state.Memory

	mu     sync.Mutex
	record []byte
	fails  func() bool
	gate   chan struct{} // nil: writes don't wait
	at     chan struct{} // gets one for each write that waits
}

func (d *disk) Save(record []byte) error {
	d.mu.Lock()
	gate := d.gate
	d.mu.Unlock()
	if gate != nil {
		d.at <- struct{}{}
		<-gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil && d.fails() {
		return errors.New("no space left on device")
	}
	d.record = record
	return nil
}

func (d *disk) hold() (release func()) {
	gate := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate, d.at = gate, make(chan struct{}, 100)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.gate = nil
		close(gate)
	}
}

func (d *disk) has(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Contains(string(d.record), text)
}

func TestASlowDiskDelaysTheAllocationAlone(t *testing.T) {
	store := new(disk)
	d := newDesk(t, device.Config{Store: store, Nodes: 1})
	p := d.plugin(&devicetest.Plugin{}, 4)
	require.NoError(t, d.allocate(pod("earlier", 1)))
	release := store.hold()
	allocated := make(chan error, 1)
	go func() { allocated <- d.allocate(pod("a", 1)) }()
	<-store.at

	other := pod("b", 1)
	calls := make(chan struct{})
	go func() {
		defer close(calls)
		d.Hints(other, &other.Spec.Containers[0])
		d.Devices("earlier", "c0")
		d.All()
		d.Health("earlier")
		d.Holds("earlier")
		assert.NoError(t, d.Wait(other))
		assert.NoError(t, d.PreStart(t.Context(), pod("earlier", 1), &other.Spec.Containers[0]))
		_, err := d.Options("earlier", "c0")
		assert.NoError(t, err)
		d.Retain(func(uid types.UID) bool { return uid != "earlier" })
		capacity, _, _ := d.Capacity()
		n := capacity[v1.ResourceName(widget)]
		assert.EqualValues(t, 4, n.Value())
	}()
	select {
	case <-calls:
	case <-time.After(90 * time.Second):
		release()
		t.Fatal("calls wait for the disk")
	}
	p.Set(devicetest.Device("0"), devicetest.Device("1")) // the plugin's update is received meanwhile
	d.has(widget, 2, 2)
	select {
	case err := <-allocated:
		t.Fatalf("allocated before it was on disk: %v", err)
	default:
	}
	release()
	require.NoError(t, <-allocated)
	d.until("all is on disk", func() bool { return store.has(`"PodUID":"a"`) && !store.has(`"PodUID":"earlier"`) })
}

func TestOnlySuccessfulAllocationsAreSaved(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	store := &disk{fails: func() bool { return r.IntN(3) == 0 }}
	d := newDesk(t, device.Config{Store: store})
	d.plugin(&devicetest.Plugin{OnAllocate: nil}, 8)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				uid := string(rune('a' + i))
				err := d.allocate(pod(uid, 1))
				on := store.has(`"PodUID":"` + uid + `"`)
				if err == nil {
					assert.True(t, on, "%s is not on disk", uid)
				} else {
					assert.ErrorContains(t, err, "no space left")
					assert.Empty(t, d.Devices(types.UID(uid), "c0"))
				}
				d.Free(types.UID(uid))
			}
		})
	}
	wg.Wait()
	store.mu.Lock()
	store.fails = nil
	store.mu.Unlock()
	require.NoError(t, d.allocate(pod("last", 1)))
	assert.Equal(t, 1, strings.Count(string(store.record), "PodUID"), "%s", store.record)
}
