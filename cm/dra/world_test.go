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

func (w *world) Keep() error { return w.disk.Keep() }

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
