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
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/kube/node"
)

func TestANodeIsCreatedWithAllItsFields(t *testing.T) { // ns-1, ns-2
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := w.config()
		cfg.Spec.Labels = map[string]string{"rack": "7"}
		cfg.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "x", Effect: v1.TaintEffectNoExecute}}
		run(t, w, cfg, func(n *node.Node) {
			_, ok := n.Owner()
			assert.False(t, ok, "there is no object yet")
			after(150 * time.Millisecond)
			calls := w.took()
			require.Equal(t, "100ms create node", calls[0], "the first try is after 100 ms")
			is := w.object()
			assert.Equal(t, map[string]string{"kubernetes.io/hostname": "n1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "rack": "7",
				"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64"}, is.Labels)
			assert.Equal(t, map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}, is.Annotations)
			assert.Equal(t, cfg.Spec.Taints, is.Spec.Taints)
			assert.Equal(t, "110", is.Status.Capacity.Pods().String())
			assert.Equal(t, v1.ConditionTrue, condition(is, v1.NodeReady).Status)
			owner, ok := n.Owner()
			assert.True(t, ok)
			assert.Equal(t, is.UID, owner.UID)
			assert.Equal(t, 1, w.registered)
		})
	})
}

func TestTheFirstObjectMatchesTheSpec(t *testing.T) { // ns-2
	is := node.Spec{
		Name: "n1", Hostname: "host", OS: "linux", Arch: "arm64", Unschedulable: true, CloudProvider: node.CloudProvider{External: true, ProvidedNodeIP: "10.0.0.1", ProviderID: "cloud://1"},
		SelfAttach: true,
	}.Object()
	assert.Equal(t, "host", is.Labels[v1.LabelHostname])
	assert.True(t, is.Spec.Unschedulable)
	assert.Equal(t, "cloud://1", is.Spec.ProviderID)
	assert.Equal(t, map[string]string{"alpha.kubernetes.io/provided-node-ip": "10.0.0.1"}, is.Annotations)
	assert.Equal(t, []v1.Taint{
		{Key: "node.kubernetes.io/unschedulable", Effect: v1.TaintEffectNoSchedule},
		{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: v1.TaintEffectNoSchedule},
	}, is.Spec.Taints)
}

func TestRegistrationIsTriedUntilItSucceeds(t *testing.T) { // ns-1
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var down atomic.Bool
		down.Store(true)
		w.fail = func(string) error {
			if down.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
		run(t, w, w.config(), func(*node.Node) {
			after(26 * time.Second)
			assert.Equal(t, []string{
				"100ms create node", "300ms create node", "700ms create node", "1.5s create node", "3.1s create node",
				"6.3s create node", "12.7s create node", "19.7s create node",
			}, w.took(), "doubling, 7 s at most")
			down.Store(false)
			after(2 * time.Second)
			assert.Contains(t, w.took()[0], "26.7s create node")
			assert.NotNil(t, w.object())
		})
	})
}

func TestARestartedAgentCorrectsItsNode(t *testing.T) { // ns-3
	spec := node.Spec{Name: "n1", Labels: map[string]string{"rack": "8", v1.LabelTopologyZone: "z2"}, OS: "linux", Arch: "amd64",
		Taints: []v1.Taint{{Key: "new", Effect: v1.TaintEffectNoSchedule}}}
	spec.Hostname = spec.Name
	fresh := spec.Object()
	fresh.Status.Capacity = v1.ResourceList{"cpu": resource.MustParse("4"), "hugepages-2Mi": resource.MustParse("1Gi")}
	fresh.Status.Allocatable = fresh.Status.Capacity
	was := &v1.Node{}
	was.Labels = map[string]string{"rack": "7", v1.LabelHostname: "old", v1.LabelTopologyZone: "z1", "theirs": "x"}
	was.Annotations = map[string]string{"theirs": "y"}
	was.Status.Capacity = v1.ResourceList{
		"cpu": resource.MustParse("2"), "hugepages-1Gi": resource.MustParse("1Gi"), "example.com/gpu": resource.MustParse("2"),
	}
	was.Status.Allocatable = was.Status.Capacity.DeepCopy()

	is, changed := spec.Reconcile(was, fresh)
	assert.True(t, changed)
	assert.Equal(t, map[string]string{
		"rack": "8", v1.LabelHostname: "n1", v1.LabelTopologyZone: "z2", v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64", "theirs": "x",
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
	}, is.Labels)
	assert.Equal(t, map[string]string{"theirs": "y", "volumes.kubernetes.io/controller-managed-attach-detach": "true"}, is.Annotations)
	assert.Empty(t, is.Spec.Taints, "taints are there for others to take away")
	gpu := is.Status.Capacity["example.com/gpu"]
	assert.Zero(t, gpu.Value(), "no plugin has offered it yet")
	assert.NotContains(t, is.Status.Capacity, v1.ResourceName("hugepages-1Gi"))
	assert.Contains(t, is.Status.Capacity, v1.ResourceName("hugepages-2Mi"))
	assert.Equal(t, "2", is.Status.Capacity.Cpu().String(), "the rest is the status's to update")
	assert.Equal(t, "7", was.Labels["rack"], "the object that was read is not changed")

	_, changed = spec.Reconcile(is, fresh)
	assert.False(t, changed, "and then it is right")

	spec.NoLabelUpdate, spec.KeepExtendedResources, spec.SelfAttach = true, true, true // nq-20
	is, _ = spec.Reconcile(was, spec.Object())
	assert.Equal(t, "7", is.Labels["rack"])
	assert.Equal(t, "z2", is.Labels[v1.LabelTopologyZone], "a label of the node's own")
	gpu = is.Status.Capacity["example.com/gpu"]
	assert.EqualValues(t, 2, gpu.Value())
	assert.NotContains(t, is.Annotations, "volumes.kubernetes.io/controller-managed-attach-detach")
}

func TestAnExistingNodeIsAdopted(t *testing.T) { // ns-1, ns-3
	for name, refusal := range map[string]error{
		"already there": nil,
		"forbidden":     apierrors.NewForbidden(nodes, "n1", errors.New("may not create")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.node = &v1.Node{}
				w.node.Name, w.node.UID = "n1", "old"
				w.fail = func(call string) error {
					if call == "create node" {
						return refusal
					}
					return nil
				}
				run(t, w, w.config(), func(n *node.Node) {
					after(150 * time.Millisecond)
					assert.Equal(t, []string{
						"100ms create node", `100ms get node rv=""`, "100ms patch node [status]",
						`100ms get node rv="0"`, "100ms patch node [status]",
					}, w.took())
					assert.EqualValues(t, "old", n.Object().UID)
					assert.Equal(t, "n1", w.object().Labels[v1.LabelHostname])
				})
			})
		})
	}
}

func TestRegistrationWaitsForANodeCreatedByOthers(t *testing.T) { // ns-4
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := w.config()
		cfg.NoRegistration = true
		run(t, w, cfg, func(*node.Node) {
			after(5 * time.Second)
			for _, call := range w.took() {
				require.Contains(t, call, "get node")
			}
			w.fakeAPI.mu.Lock()
			w.node = &v1.Node{}
			w.node.Name, w.node.UID = "n1", "theirs"
			w.fakeAPI.mu.Unlock()
			after(8 * time.Second)
			assert.Equal(t, v1.ConditionTrue, condition(w.object(), v1.NodeReady).Status)
			assert.NotContains(t, strings.Join(w.took(), "\n"), "create")
			assert.Empty(t, w.object().Labels, "only its status is ours")
		})
	})
}

func TestImpossibleConfigurationsFailAtOnce(t *testing.T) {
	w := newWorld(t)
	for want, change := range map[string]func(*node.Config){
		"Spec.Name":     func(c *node.Config) { c.Spec.Name = "" },
		"Nodes is nil":  func(c *node.Config) { c.Nodes = nil },
		"whole seconds": func(c *node.Config) { c.Timing.LeaseDuration = time.Millisecond },
		"negative":      func(c *node.Config) { c.Timing.UpdatePeriod = -1 },
		"no Set":        func(c *node.Config) { c.Setters = []node.Setter{{Name: "x"}} },
	} {
		cfg := w.config()
		change(&cfg)
		_, err := node.New(cfg)
		assert.ErrorContains(t, err, want)
	}
}
