package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func (s Schedule) hasClaims() bool {
	return slices.ContainsFunc(s, func(step Step) bool { return len(step.Shape.Claims) > 0 })
}

// driverOf returns the driver of the device that is allocated to a claim: the name of the
// claim up to the first "-".
func driverOf(claim string) string {
	driver, _, _ := strings.Cut(claim, "-")
	return driver
}

// addClaims adds claims to the pod, which all of its containers use.
func addClaims(pod *v1.Pod, names []string) {
	for _, name := range names {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, v1.PodResourceClaim{Name: name, ResourceClaimName: &name})
		for c := range podspec.Containers(pod) {
			c.Resources.Claims = append(c.Resources.Claims, v1.ResourceClaim{Name: name})
		}
	}
}

// claimsOf returns the names of the pod's claims. pod may be nil.
func claimsOf(pod *v1.Pod) (names []string) {
	if pod == nil {
		return nil
	}
	for _, c := range pod.Spec.ResourceClaims {
		names = append(names, *c.ResourceClaimName)
	}
	return names
}

// claimPlane is the control plane of claims. It outlives agents.
type claimPlane struct {
	checkpoint state.Memory // of the agents

	mu         sync.Mutex             // guards the fields below
	users      map[string][]types.UID // pods for which a claim was reserved, by claim
	allocation map[string]int         // number of allocations of a claim
}

func newClaimPlane() *claimPlane {
	return &claimPlane{users: map[string][]types.UID{}, allocation: map[string]int{}}
}

// get returns a claim that is reserved for the pods. If none of them had it before, it was
// deallocated meanwhile, and has another device.
func (p *claimPlane) get(namespace, name string, users []types.UID) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
	if len(users) == 0 {
		return claim
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.users[name], func(uid types.UID) bool { return slices.Contains(users, uid) }) {
		p.allocation[name]++
	}
	p.users[name] = users
	for _, uid := range users {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: string(uid), UID: uid})
	}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{
			Request: "device", Driver: driverOf(name), Pool: "pool", Device: fmt.Sprintf("%s-%d", name, p.allocation[name]),
		}},
	}}
	return claim
}

// newClaims returns the dra.Manager of an agent, with the checkpoint of the previous agent;
// nil if no pod has claims.
func (r *run) newClaims(a *Agent) (*dra.Manager, error) {
	if !r.cfg.Schedule.hasClaims() {
		return nil, nil
	}
	m, err := dra.New(dra.Config{Claims: claimReader{a}, Plugins: claimDrivers{a}, Store: claimStore{&r.claims.checkpoint, a}})
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return m, nil
}

// loseClaims reverts all preparations: drivers do not keep them when the machine is
// rebooted.
func (r *run) loseClaims() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(r.truth.prepared)) {
		r.noteLocked(Entry{Kind: ClaimUnprepared, Claim: name})
	}
}

// A claimReader reads claims from the API of an agent.
type claimReader struct{ agent *Agent }

// GetClaim implements dra.Claims.
func (c claimReader) GetClaim(ctx context.Context, namespace, name string) (claim *resourceapi.ResourceClaim, err error) {
	err = c.agent.Call(ctx, Call{Method: getClaimCall, ID: name}, func() error {
		var users []types.UID
		for _, pod := range c.agent.run.store.list(false) {
			if slices.Contains(claimsOf(pod), name) && !status.Terminal(pod.Status.Phase) {
				users = append(users, pod.UID)
			}
		}
		claim = c.agent.run.claims.get(namespace, name, users)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claim, nil
}

// claimDrivers are the drivers, as one agent calls them.
type claimDrivers struct{ agent *Agent }

// Registered implements dra.Plugins.
func (d claimDrivers) Registered(string) bool { return !d.agent.run.driversAway() }

// Prepare implements dra.Plugins.
func (d claimDrivers) Prepare(ctx context.Context, driver string, claims []dra.ClaimRef) (map[types.UID]dra.Prepared, error) {
	results := map[types.UID]dra.Prepared{}
	err := d.call(ctx, prepareCall, driver, claims, ClaimPrepared, func(uid types.UID) {
		results[uid] = dra.Prepared{Devices: []dra.Device{{Pool: "pool", Name: string(uid), CDI: []string{"sim.test/" + driver + "=" + string(uid)}}}}
	})
	return results, err
}

// Unprepare implements dra.Plugins.
func (d claimDrivers) Unprepare(ctx context.Context, driver string, claims []dra.ClaimRef) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	err := d.call(ctx, unprepareCall, driver, claims, ClaimUnprepared, func(uid types.UID) { results[uid] = nil })
	return results, err
}

// call makes a call of a driver: it adds an entry of the kind for each claim and calls
// result with its UID. A driver that lies does neither, and returns a result for another
// claim.
func (d claimDrivers) call(ctx context.Context, method, driver string, claims []dra.ClaimRef, effect EntryKind, result func(uid types.UID)) error {
	var names []string
	for _, ref := range claims {
		names = append(names, ref.Name)
	}
	return d.agent.call(ctx, Call{Method: method, ID: driver + " " + strings.Join(names, " ")}, func(kind FaultKind, _ time.Duration) error {
		switch {
		case d.agent.run.driversAway():
			return dra.ErrNotRegistered
		case kind == Lie:
			result("another claim")
			return nil
		}
		for _, ref := range claims {
			if !d.agent.run.note(Entry{Agent: d.agent.agent, Kind: effect, Claim: ref.Name}) {
				return context.Canceled
			}
			result(ref.UID)
		}
		return nil
	})
}

// driversAway reports whether the drivers are being restarted.
func (r *run) driversAway() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.windows, func(w faultWindow) bool { return w.step.Kind == Away && time.Now().Before(w.until) })
}

// claimStore is the checkpoint of the claims of an agent. A killed agent cannot change it.
type claimStore struct {
	*state.Memory
	agent *Agent
}

// Save implements state.Store.
func (s claimStore) Save(checkpoint []byte) error {
	s.agent.run.mu.Lock()
	defer s.agent.run.mu.Unlock()
	if s.agent.endedLocked() {
		return errors.New("the agent has been killed")
	}
	return s.Memory.Save(checkpoint)
}

// A claimsRuntime prepares the claims of a pod as the engine of runtime/cri does: before it
// creates a sandbox, and if they are not prepared, before it creates a container.
type claimsRuntime struct {
	runtime.Runtime
	claims *dra.Manager
}

func (r claimsRuntime) Unwrap() any { return r.Runtime }

func (r claimsRuntime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if err := r.prepare(ctx, req); err != nil {
		return runtime.SyncResult{}, fmt.Errorf("sim: %w", err)
	}
	return r.Runtime.SyncPod(ctx, req)
}

func (r claimsRuntime) prepare(ctx context.Context, req runtime.SyncRequest) error {
	ready := req.Status != nil && slices.ContainsFunc(req.Status.Sandboxes, func(s runtime.SandboxStatus) bool { return s.State == runtime.SandboxReady })
	if !ready {
		return r.claims.PrepareResources(ctx, req.Pod)
	}
	for c := range podspec.Containers(req.Pod) {
		if _, err := r.claims.CDIDevices(ctx, req.Pod, c); err != nil {
			return err
		}
	}
	return nil
}
