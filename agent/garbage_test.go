package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// keeper is a runtime, volumes and cgroups that record in which order they are collected.
type keeper struct {
	runtime.Runtime
	calls []string
	fail  map[string]error
}

func (k *keeper) Pods(context.Context) ([]*runtime.Pod, error) {
	return []*runtime.Pod{
		{UID: "running", Containers: []runtime.Container{{State: runtime.ContainerRunning}}},
		{UID: "exited", Containers: []runtime.Container{{State: runtime.ContainerExited}}, Sandboxes: []runtime.Sandbox{{State: runtime.SandboxNotReady}}},
	}, k.fail["list"]
}

func (k *keeper) CollectGarbage(context.Context, runtime.GCPolicy) error {
	k.calls = append(k.calls, "runtime")
	return k.fail["runtime"]
}

type keptVolumes struct{ *keeper }

func (keptVolumes) Mount(context.Context, *v1.Pod) (map[string]runtime.Volume, error) {
	return nil, nil
}
func (keptVolumes) Unmount(context.Context, *v1.Pod) error { return nil }
func (keptVolumes) HasVolumes(uid types.UID) bool          { return uid == "mounted" }

func (v keptVolumes) Retain(_ context.Context, keep func(types.UID) bool) error {
	v.calls = append(v.calls, fmt.Sprintf("volumes: running %v, exited %v, removed %v, desired %v", keep("running"), keep("exited"), keep("removed"), keep("desired")))
	return v.fail["volumes"]
}

type keptCgroups struct{ *keeper }

func (keptCgroups) Has(*v1.Pod) bool                        { return true }
func (keptCgroups) Ensure(context.Context, *v1.Pod) error   { return nil }
func (keptCgroups) Remove(context.Context, types.UID) error { return nil }

func (c keptCgroups) Retain(_ context.Context, keep func(types.UID) bool) error {
	c.calls = append(c.calls, fmt.Sprintf("cgroups: removed %v, desired %v", keep("removed"), keep("desired")))
	return c.fail["cgroups"]
}

type keptClaims struct{ *keeper }

func (keptClaims) UnprepareResources(context.Context, types.UID) error { return nil }
func (keptClaims) MayHaveResources(types.UID) bool                     { return false }

func (c keptClaims) Retain(_ context.Context, keep func(types.UID) bool) error {
	c.calls = append(c.calls, fmt.Sprintf("claims: running %v, exited %v, removed %v, desired %v", keep("running"), keep("exited"), keep("removed"), keep("desired")))
	return nil
}

func TestClaimsOfRemovedPodsAreReleased(t *testing.T) { // dra-13
	k := &keeper{fail: map[string]error{}}
	g := newSweeper(Config{Subsystems: Subsystems{Claims: keptClaims{k}}, Runtime: k}, nil)
	policy := runtime.GCPolicy{Keep: func(uid types.UID) bool { return uid == "desired" }}
	require.NoError(t, g.CollectGarbage(t.Context(), policy))
	assert.Contains(t, k.calls, "claims: running true, exited false, removed false, desired true")
	k.calls, k.fail = nil, map[string]error{"list": errors.New("down")}
	require.Error(t, g.CollectGarbage(t.Context(), policy))
	assert.Contains(t, k.calls, "claims: running true, exited true, removed true, desired true", "it is not known which pods run")
}

type keptLedger struct {
	*keeper
	pods []types.UID
}

func (l keptLedger) Retain(_ context.Context, keep func(types.UID) bool) error {
	for _, uid := range l.pods {
		l.calls = append(l.calls, fmt.Sprintf("ledger: %s %v", uid, keep(uid)))
	}
	return l.fail["ledger"]
}

// The ledger is the evidence that what is left of a pod belongs to this node.
func TestTheLedgerForgetsAPodAfterEverythingElseIsRemoved(t *testing.T) {
	k := &keeper{fail: map[string]error{}}
	l := keptLedger{k, []types.UID{"desired", "exited", "running", "removed", "mounted"}}
	g := newSweeper(Config{Runtime: k, Subsystems: Subsystems{Volumes: keptVolumes{k}, Cgroups: keptCgroups{k}, Ledger: l}}, nil)
	policy := runtime.GCPolicy{Keep: func(uid types.UID) bool { return uid == "desired" }}
	require.NoError(t, g.CollectGarbage(t.Context(), policy))
	assert.Equal(t, []string{"ledger: desired true", "ledger: exited true", "ledger: running true", "ledger: removed false", "ledger: mounted true"}, k.calls[len(k.calls)-5:])

	for _, part := range []string{"runtime", "volumes", "cgroups", "list"} {
		k.calls, k.fail = nil, map[string]error{part: errors.New("down")}
		require.Error(t, g.CollectGarbage(t.Context(), policy))
		assert.NotContains(t, k.calls, "ledger: removed false", part)
	}
	k.fail = map[string]error{"ledger": errors.New("read-only")}
	require.EqualError(t, g.CollectGarbage(t.Context(), policy), "read-only")
}

func TestGarbageIsCollectedFromTheRuntimeOutwards(t *testing.T) {
	k := &keeper{fail: map[string]error{}}
	g := newSweeper(Config{Runtime: k, Subsystems: Subsystems{Volumes: keptVolumes{k}, Cgroups: keptCgroups{k}}}, nil)
	policy := runtime.GCPolicy{Keep: func(uid types.UID) bool { return uid == "desired" }}
	require.NoError(t, g.CollectGarbage(t.Context(), policy))
	assert.Equal(t, []string{"runtime", "volumes: running true, exited false, removed false, desired true", "cgroups: removed false, desired true"}, k.calls)

	k.calls = nil
	require.NoError(t, g.CollectGarbage(t.Context(), runtime.GCPolicy{}))
	assert.Equal(t, []string{"runtime"}, k.calls, "which pods are removed is not known")

	k.calls, k.fail = nil, map[string]error{"runtime": errors.New("a"), "volumes": errors.New("b"), "cgroups": errors.New("c")}
	assert.EqualError(t, g.CollectGarbage(t.Context(), policy), "a\nb\nc")
	assert.Len(t, k.calls, 3, "a failure does not skip the others")

	k.calls, k.fail = nil, map[string]error{"list": errors.New("down")}
	assert.EqualError(t, g.CollectGarbage(t.Context(), policy), "list the pods of the runtime: down")
	assert.Contains(t, k.calls, "volumes: running true, exited true, removed true, desired true", "no volume is removed if it is not known which pods run")

	k.calls, k.fail = nil, map[string]error{"list": errors.New("must not be called")}
	require.NoError(t, g.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: func(types.UID) bool { return true }}))
	assert.Contains(t, k.calls, "volumes: running true, exited true, removed true, desired true", "without removed pods the runtime is not listed")

	k.calls, k.fail = nil, nil
	g = newSweeper(Config{Runtime: k, Subsystems: Subsystems{Cgroups: keptCgroups{k}}}, nil)
	require.NoError(t, g.CollectGarbage(t.Context(), policy))
	assert.Equal(t, []string{"runtime", "cgroups: removed false, desired true"}, k.calls)
	assert.Nil(t, newSweeper(Config{}, nil))
}
