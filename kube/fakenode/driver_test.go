package fakenode_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// allocate creates the claim of a pod, allocated to a device of a driver as a scheduler does.
func allocate(api *apitest.Server, pod *v1.Pod, claim, driver string) {
	api.Put(&resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: claim, UID: "uid-" + pod.UID},
		Status: resourceapi.ResourceClaimStatus{
			ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
			Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
				Results: []resourceapi.DeviceRequestAllocationResult{{Request: "gpu", Driver: driver, Pool: "fake-0", Device: "gpu-0"}},
			}},
		},
	})
}

// withClaim adds a claim to the pod.
func withClaim(name string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
		pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}}
	}
}

// devices returns n devices.
func devices(n int) (all []resourceapi.Device) {
	for i := range n {
		all = append(all, resourceapi.Device{Name: fmt.Sprint("gpu-", i)})
	}
	return all
}

func TestClaimsArePreparedBeforeAPodStarts(t *testing.T) {
	var calls []string
	var broken atomic.Bool
	broken.Store(true)
	driver := fakenode.Driver{Name: "gpu.example.com", Called: func(_ context.Context, method string, claim dra.ClaimRef) error {
		if broken.Load() {
			return errors.New("no such device")
		}
		calls = append(calls, method+" "+claim.Name)
		return nil
	}}
	inWorld(t, fakenode.Config{Nodes: []fakenode.Node{{Drivers: []fakenode.Driver{driver}}}}, func(w *world) {
		pod := w.run("web", "", withClaim("mine"))
		w.after(3 * time.Second)
		assert.NotEqual(t, "Running, ready", w.summary("web"), "the claim does not exist")
		allocate(w.api, pod, "mine", driver.Name)
		w.after(5 * time.Second)
		assert.NotEqual(t, "Running, ready", w.summary("web"), "the driver fails")
		broken.Store(false)
		w.after(10 * time.Second)
		assert.Equal(t, "Running, ready", w.summary("web"))
		assert.Equal(t, []string{"NodePrepareResources mine"}, calls)

		require.NoError(t, w.nodes.Fail("fake-0"))
		require.NoError(t, w.nodes.Recover(w.t.Context(), "fake-0"))
		w.after(20 * time.Second)
		assert.Equal(t, "Running, ready, 1 restarts", w.summary("web"))
		w.delete("web")
		w.after(time.Minute)
		assert.Equal(t, "gone", w.summary("web"))
		assert.Equal(t, "NodeUnprepareResources mine", calls[len(calls)-1])
	})
}

func TestDevicesArePublished(t *testing.T) {
	cfg := fakenode.Config{Nodes: fakenode.Many(2, fakenode.Node{Drivers: []fakenode.Driver{{Name: "gpu.example.com", Devices: devices(130)}, {Name: "nic.example.com"}}})}
	inWorld(t, cfg, func(w *world) {
		w.after(time.Second)
		list, err := w.as.ResourceV1().ResourceSlices().List(w.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=fake-1"})
		require.NoError(t, err)
		require.Len(t, list.Items, 2)
		assert.Len(t, list.Items[0].Spec.Devices, 128)
		assert.Len(t, list.Items[1].Spec.Devices, 2)
		assert.Equal(t, resourceapi.ResourcePool{Name: "fake-1", Generation: 1, ResourceSliceCount: 2}, list.Items[0].Spec.Pool)
		w.nodes.Stop()
		list, err = w.as.ResourceV1().ResourceSlices().List(w.t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Empty(t, list.Items)
	})
}

func TestNodesWithoutDriversRejectClaims(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		w.run("web", "", withClaim("mine"))
		w.after(3 * time.Second)
		assert.Equal(t, "Failed UnexpectedAdmissionError", w.summary("web"))
	})
}

func TestInvalidDriversAreRejected(t *testing.T) {
	for want, drivers := range map[string][]fakenode.Driver{
		`node fake-0: Drivers[0].Name is empty`: {{}},
		`node fake-0: duplicate driver "a"`:     {{Name: "a"}, {Name: "a"}},
	} {
		_, err := fakenode.New(new(apitest.Server).RESTConfig(), fakenode.Config{Nodes: []fakenode.Node{{Drivers: drivers}}})
		assert.ErrorContains(t, err, want)
	}
}
