package dra

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func uses(claims ...string) v1.ResourceRequirements {
	var r v1.ResourceRequirements
	for _, c := range claims {
		name, request, _ := strings.Cut(c, "/")
		r.Claims = append(r.Claims, v1.ResourceClaim{Name: name, Request: request})
	}
	return r
}

// testPod has an init container, a sidecar and two containers with claims.
func testPod() *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "pod-1"}}
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{
		{Name: "own", ResourceClaimTemplateName: new("template")},
		{Name: "shared", ResourceClaimName: new("gpu")},
		{Name: "again", ResourceClaimName: new("gpu")},
		{Name: "unused", ResourceClaimName: new("spare")},
		{Name: "none", ResourceClaimTemplateName: new("template")},
	}
	pod.Spec.InitContainers = []v1.Container{
		{Name: "init", Resources: uses("own")},
		{Name: "sidecar", RestartPolicy: new(v1.ContainerRestartPolicyAlways), Resources: uses("shared/small")},
	}
	pod.Spec.Containers = []v1.Container{{Name: "a", Resources: uses("own/x", "again", "none")}, {Name: "b"}}
	pod.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "own", ResourceClaimName: new("web-own-1")}, {Name: "none"}}
	return pod
}

// dra-1, dra-5
func TestClaimsOfAPod(t *testing.T) {
	pod := testPod()
	claims, err := podClaims(pod)
	require.NoError(t, err)
	assert.Equal(t, []podClaim{{"web-own-1", true}, {"gpu", false}, {"spare", false}}, claims, "each once, also those that no container uses, not those that are not needed")

	pod.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{
		ResourceClaimName: "web-extended", RequestMappings: []v1.ContainerExtendedResourceRequest{{ContainerName: "b", ResourceName: "e.com/gpu", RequestName: "r0"}},
	}
	claims, err = podClaims(pod)
	require.NoError(t, err)
	assert.Equal(t, podClaim{"web-extended", true}, claims[3])
	got, err := containerUses(pod, &pod.Spec.Containers[1])
	require.NoError(t, err)
	assert.Equal(t, []use{{"web-extended", "r0", "claim:web-extended/r0"}}, got)
	got, err = containerUses(pod, &pod.Spec.Containers[0])
	require.NoError(t, err)
	assert.Equal(t, []use{{"web-own-1", "x", "claim:own/x"}, {"gpu", "", "claim:again"}}, got)

	pod.Status.ResourceClaimStatuses = nil
	_, err = podClaims(pod)
	require.EqualError(t, err, "pod claim own: ResourceClaim not created yet")
	_, err = containerUses(pod, &v1.Container{Name: "c", Resources: uses("x")})
	require.EqualError(t, err, "container c: pod has no claim x")
	none, err := podClaims(&v1.Pod{})
	require.NoError(t, err)
	assert.Empty(t, none)
}

// A claimOption changes a claim.
type claimOption = func(*resourceapi.ResourceClaim)

// testClaim returns a claim that is allocated by a driver and reserved for a pod.
func testClaim(name, driver string, pod types.UID, options ...claimOption) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: driver, Pool: "pool", Device: "dev"}},
	}}
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "web", UID: pod}}
	for _, o := range options {
		o(c)
	}
	return c
}

// dra-3, dra-6
func TestClaimsThatAPodMayNotUse(t *testing.T) {
	owned := func(kind, version, name string, uid types.UID) claimOption {
		return func(c *resourceapi.ResourceClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{Kind: kind, APIVersion: version, Name: name, UID: uid, Controller: new(true)}}
		}
	}
	deleted := func(c *resourceapi.ResourceClaim) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	grouped := func(name string) claimOption {
		return func(c *resourceapi.ResourceClaim) {
			c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: name, UID: "g"}}
		}
	}
	for name, tt := range map[string]struct {
		options   []claimOption
		generated bool
		prepared  bool
		pod       types.UID
		err       string
	}{
		"usable":                         {},
		"generated for the pod":          {generated: true, options: []claimOption{owned("Pod", "v1", "web", "pod-1")}},
		"generated for its group":        {generated: true, options: []claimOption{owned("PodGroup", "scheduling.k8s.io/v1", "grp", "g"), grouped("grp")}},
		"of a user":                      {generated: true, err: "ResourceClaim ns/gpu was not created for pod ns/web (pod-1)"},
		"generated for another pod":      {generated: true, options: []claimOption{owned("Pod", "v1", "web", "pod-0")}, err: "was not created for pod"},
		"generated for another group":    {generated: true, options: []claimOption{owned("PodGroup", "scheduling.k8s.io/v1", "other", "g")}, err: "was not created for pod"},
		"a group of another API":         {generated: true, options: []claimOption{owned("PodGroup", "example.com/v1", "grp", "g")}, err: "was not created for pod"},
		"not allocated":                  {options: []claimOption{func(c *resourceapi.ResourceClaim) { c.Status.Allocation = nil }}, err: "ResourceClaim ns/gpu is not allocated"},
		"reserved for another pod":       {pod: "pod-0", err: "pod ns/web (pod-1) is not allowed to use ResourceClaim ns/gpu (uid-gpu): not reserved for it"},
		"reserved for its group":         {options: []claimOption{grouped("grp")}},
		"reserved for another group":     {options: []claimOption{grouped("other")}, err: "not reserved for it"},
		"reserved for no group":          {options: []claimOption{grouped("")}, err: "not reserved for it"},
		"deleted":                        {options: []claimOption{deleted}, err: "ResourceClaim ns/gpu is being deleted"},
		"deleted while the pod runs":     {options: []claimOption{deleted}, prepared: true},
		"reserved for a pod of a custom": {options: []claimOption{func(c *resourceapi.ResourceClaim) { c.Status.ReservedFor[0].APIGroup = "example.com" }}, err: "not reserved for it"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := testPod()
			pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new("grp")}
			uid := pod.UID
			if tt.pod != "" {
				uid = tt.pod
			}
			err := checkClaim(pod, podClaim{"gpu", tt.generated}, testClaim("gpu", "d", uid, tt.options...), tt.prepared)
			if tt.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.err)
		})
	}
}

// dra-7
func TestCallsThatNoDeviceNeeds(t *testing.T) {
	skip := func(ops ...resourceapi.SkipNodeOperation) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{Driver: "d", SkipNodeOperations: ops}
	}
	for name, tt := range map[string]struct {
		results []resourceapi.DeviceRequestAllocationResult
		want    driverClaim
	}{
		"none":      {[]resourceapi.DeviceRequestAllocationResult{skip()}, driverClaim{}},
		"all":       {[]resourceapi.DeviceRequestAllocationResult{skip("*")}, driverClaim{true, true}},
		"prepare":   {[]resourceapi.DeviceRequestAllocationResult{skip("NodePrepareResources")}, driverClaim{true, false}},
		"one needs": {[]resourceapi.DeviceRequestAllocationResult{skip("*"), skip("NodeUnprepareResources")}, driverClaim{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := testClaim("gpu", "d", "p")
			c.Status.Allocation.Devices.Results = tt.results
			assert.Equal(t, map[string]driverClaim{"d": tt.want}, allocatedDrivers(c))
		})
	}
}

// dra-8
func TestDevicesOfARequest(t *testing.T) {
	for _, tt := range []struct {
		of      []string
		request string
		want    bool
	}{
		{nil, "", true}, {nil, "gpu", true}, {[]string{"gpu"}, "", true}, {[]string{"nic", "gpu"}, "gpu", true}, {[]string{"nic"}, "gpu", false},
		{[]string{"gpu/large"}, "gpu", true}, {[]string{"gpu/large"}, "gpu/large", true}, {[]string{"gpu/large"}, "gpu/small", false}, {[]string{"gpus/large"}, "gpu", false},
	} {
		assert.Equal(t, tt.want, Device{Requests: tt.of}.satisfies(tt.request), "%v for %q", tt.of, tt.request)
	}
}

// dra-11: the text is a checkpoint of a kubelet.
func TestACheckpointOfAKubeletIsRead(t *testing.T) {
	l, err := decode([]byte(`{"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"ClaimInfoStateList\":[{\"ClaimUID\":\"067798be-454e-4be4-9047-1aa06aea63f7\",\"ClaimName\":\"example\",\"Namespace\":\"default\",\"PodUIDs\":{\"139cdb46-f989-4f17-9561-ca10cfb509a6\":{}},\"DriverState\":{\"test-driver.cdi.k8s.io\":{\"Devices\":[{\"PoolName\":\"worker-1\",\"DeviceName\":\"dev-1\",\"RequestNames\":[\"test request\"],\"CDIDeviceIDs\":[\"example.com/example=cdi-example\"]}]}}}]}","Checksum":1656016162}`))
	require.NoError(t, err)
	s := l[claimKey{"default", "example"}]
	require.NotNil(t, s)
	assert.True(t, s.prepared("139cdb46-f989-4f17-9561-ca10cfb509a6"))
	assert.Equal(t, []Device{{Pool: "worker-1", Name: "dev-1", Requests: []string{"test request"}, CDI: []string{"example.com/example=cdi-example"}}}, s.drivers["test-driver.cdi.k8s.io"].devices)
	claim := testClaim("example", "test-driver.cdi.k8s.io", "x", func(c *resourceapi.ResourceClaim) { c.UID = s.ref.UID })
	require.NoError(t, s.conflict(claim), "the allocation is not known")
	assert.Equal(t, []string{"test-driver.cdi.k8s.io"}, s.missingDrivers(claim), "a new sandbox requires a new call")
}

// dra-11
func TestCheckpointsAreReadAsTheyWereWritten(t *testing.T) {
	claim := testClaim("gpu", "d", "pod-1")
	l := ledger{}
	l.begin("pod-1", claim)
	l.begin("pod-2", claim)
	l.setFailed(ClaimRef{"ns", "gpu", "uid-gpu"}, "d")
	again, err := decode(l.encode())
	require.NoError(t, err)
	assert.Equal(t, l, again)
	l.setPrepared(ClaimRef{"ns", "gpu", "uid-gpu"}, "d", []Device{{Pool: "p", Name: "n", Requests: []string{"r"}, CDI: []string{"v/c=1"}, ShareID: "s"}})
	again, err = decode(l.encode())
	require.NoError(t, err)
	state := again[claimKey{"ns", "gpu"}]
	assert.True(t, state.prepared("pod-2"))
	assert.False(t, state.prepared("pod-3"))
	assert.Equal(t, "s", state.drivers["d"].devices[0].ShareID)
	assert.False(t, state.drivers["d"].current)
	other := testClaim("gpu", "d", "pod-3", func(c *resourceapi.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Device = "other" })
	require.ErrorContains(t, state.conflict(other), "its previous allocation is not unprepared yet")
	require.NoError(t, state.conflict(claim))
	share := testClaim("gpu", "d", "pod-3", func(c *resourceapi.ResourceClaim) {
		c.Status.Allocation.Devices.Results[0].ShareID = new(types.UID("another share of the device"))
	})
	require.ErrorContains(t, state.conflict(share), "its previous allocation is not unprepared yet")
	empty, err := decode(ledger{}.encode())
	require.NoError(t, err)
	assert.Empty(t, empty)
}

func TestCorruptCheckpointsAreRejected(t *testing.T) {
	l := ledger{}
	l.begin("pod-1", testClaim("gpu", "d", "pod-1"))
	l.setFailed(ClaimRef{"ns", "gpu", "uid-gpu"}, "d")
	whole := l.encode()
	for i := range whole {
		for bit := range 8 {
			broken := append([]byte(nil), whole...)
			broken[i] ^= 1 << bit
			if got, err := decode(broken); err == nil {
				require.Equal(t, l, got, "byte %d, bit %d: the case of a key does not count in JSON", i, bit)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(ledger{}.encode())
	l := ledger{}
	l.begin("pod-1", testClaim("gpu", "d", "pod-1"))
	f.Add(l.encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := decode(raw)
		if err != nil {
			return
		}
		again, err := decode(l.encode())
		require.NoError(t, err)
		require.Equal(t, len(l), len(again))
	})
}
