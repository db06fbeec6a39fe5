package dra

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
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
		{Name: "unused", ResourceClaimName: new("missing")},
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
	assert.Equal(t, []podClaim{{"web-own-1", true}, {"gpu", false}}, claims, "each once, not those that no container uses or that are not needed")

	pod.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{
		ResourceClaimName: "web-extended", RequestMappings: []v1.ContainerExtendedResourceRequest{{ContainerName: "b", ResourceName: "e.com/gpu", RequestName: "r0"}},
	}
	claims, err = podClaims(pod)
	require.NoError(t, err)
	assert.Equal(t, podClaim{"web-extended", true}, claims[2])
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

func TestCDINames(t *testing.T) {
	for name, err := range map[string]string{
		"vendor.com/gpu=0":       "",
		"v/c=a.b:c-d_e":          "",
		"":                       `no "="`,
		"vendor.com/gpu":         `no "="`,
		"gpu=0":                  `no "/"`,
		"/gpu=0":                 "invalid vendor",
		"1vendor/gpu=0":          "invalid vendor",
		"vendor./gpu=0":          "invalid vendor",
		"vendor.com/=0":          "invalid class",
		"vendor.com/g.u=0":       "invalid class",
		"vendor.com/gpu=":        "invalid device",
		"vendor.com/gpu=-a":      "invalid device",
		"../../etc=x":            "invalid vendor",
		"vendor.com/gpu=a b":     "invalid device",
		"vendor.com/gpu=a\x00b":  "invalid device",
		"vendor.com/gpu=a/../b":  "invalid device",
		"v/c=" + repeated(2_000): "longer than",
	} {
		if err == "" {
			assert.NoError(t, checkCDIName(name), name)
		} else {
			assert.ErrorContains(t, checkCDIName(name), err, name)
		}
	}
}

func repeated(n int) string { return strings.Repeat("a", n) }

// dra-9
func TestResponsesOfDrivers(t *testing.T) {
	claims := []ClaimRef{{"ns", "a", "1"}, {"ns", "b", "2"}}
	device := func(pool, name string, cdi ...string) *drav1.Device {
		return &drav1.Device{PoolName: pool, DeviceName: name, CdiDeviceIds: cdi}
	}
	many := func(n int) (all []*drav1.Device) {
		for i := range n {
			all = append(all, device("p", fmt.Sprint(i)))
		}
		return all
	}
	for name, tt := range map[string]struct {
		devices []*drav1.Device
		err     string // of the claim
	}{
		"none":             {},
		"without CDI":      {devices: []*drav1.Device{device("p", "d")}},
		"shares":           {devices: []*drav1.Device{{PoolName: "p", DeviceName: "d", ShareId: new("1")}, {PoolName: "p", DeviceName: "d", ShareId: new("2")}}},
		"most":             {devices: many(256)},
		"too many":         {devices: many(257), err: "257 devices, the limit is 256"},
		"twice":            {devices: []*drav1.Device{device("p", "d"), device("p", "d")}, err: "device p/d occurs twice"},
		"no pool":          {devices: []*drav1.Device{device("", "d")}, err: "pool name is empty"},
		"no name":          {devices: []*drav1.Device{device("p", "")}, err: "device name is empty"},
		"nil":              {devices: []*drav1.Device{nil}, err: "pool name is empty"},
		"long":             {devices: []*drav1.Device{device("p", repeated(300))}, err: "longer than 253 bytes"},
		"bad CDI":          {devices: []*drav1.Device{device("p", "d", "v/c=1", "oops")}, err: `CDI device "oops": no "="`},
		"too many CDI":     {devices: []*drav1.Device{device("p", "d", make([]string, 65)...)}, err: "65 CDI devices"},
		"too many request": {devices: []*drav1.Device{{PoolName: "p", DeviceName: "d", RequestNames: make([]string, 65)}}, err: "65 requests"},
		"long request":     {devices: []*drav1.Device{{PoolName: "p", DeviceName: "d", RequestNames: []string{repeated(300)}}}, err: "request name is longer"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := preparedOf(claims, map[string]*drav1.NodePrepareResourceResponse{"1": {Devices: tt.devices}, "2": nil})
			require.NoError(t, err)
			require.NoError(t, got["2"].Err, "a response without devices is valid")
			if tt.err == "" {
				require.NoError(t, got["1"].Err)
				assert.Len(t, got["1"].Devices, len(tt.devices))
				return
			}
			require.ErrorContains(t, got["1"].Err, tt.err)
			assert.Empty(t, got["1"].Devices)
		})
	}
	_, err := preparedOf(claims, map[string]*drav1.NodePrepareResourceResponse{"1": {}, "3": {}})
	require.EqualError(t, err, `driver returned a result for unknown claim UID "3"`)
	_, err = unpreparedOf(claims, map[string]*drav1.NodeUnprepareResourceResponse{"3": {}})
	require.Error(t, err)
	failed, err := unpreparedOf(claims, map[string]*drav1.NodeUnprepareResourceResponse{"1": {Error: repeated(5_000) + "\xff"}, "2": nil})
	require.NoError(t, err)
	assert.Len(t, failed["1"].Error(), 1027)
	require.NoError(t, failed["2"])
}

// dra-10
func TestVersionsOfPlugins(t *testing.T) {
	for name, tt := range map[string]struct {
		supported []string
		want      services
		err       string
	}{
		"both":     {[]string{"v1beta1.DRAPlugin", "v1.DRAPlugin"}, services{dra: "v1.DRAPlugin"}, ""},
		"old":      {[]string{"v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth"}, services{"v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth"}, ""},
		"health":   {[]string{"v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"}, services{"v1.DRAPlugin", "v1.DRAResourceHealth"}, ""},
		"future":   {[]string{"v2.DRAPlugin"}, services{}, "want v1.DRAPlugin or v1beta1.DRAPlugin"},
		"no DRA":   {[]string{"v1.DRAResourceHealth"}, services{}, "want v1.DRAPlugin"},
		"ancient":  {[]string{"1.0.0"}, services{}, "want v1.DRAPlugin"},
		"no names": {nil, services{}, "want v1.DRAPlugin"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseServices(tt.supported)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func health(pool, name string, h healthv1.HealthStatus, timeout int64, message string) *healthv1.DeviceHealth {
	return &healthv1.DeviceHealth{Device: &healthv1.DeviceIdentifier{PoolName: pool, DeviceName: name}, Health: h, HealthCheckTimeoutSeconds: timeout, Message: message}
}

// dra-12
func TestHealthOfDevicesExpires(t *testing.T) {
	now := time.Unix(1_000, 0)
	c := healthCache{}
	list, err := reportsOf([]*healthv1.DeviceHealth{
		health("p", "a", healthv1.HealthStatus_HEALTHY, 0, ""), health("p", "b", healthv1.HealthStatus_UNHEALTHY, 10, "hot"), health("p", "c", 99, -1, ""),
	})
	require.NoError(t, err)
	assert.True(t, c.update(now, list))
	assert.False(t, c.update(now, list))
	status, message := c.get("p", "b")
	assert.Equal(t, "Unhealthy hot", string(status)+" "+message)
	status, _ = c.get("p", "c")
	assert.Equal(t, v1.ResourceHealthStatusUnknown, status)
	changed, next := c.expire(now.Add(9 * time.Second))
	assert.False(t, changed)
	assert.Equal(t, now.Add(10*time.Second), next)
	changed, next = c.expire(next)
	assert.True(t, changed)
	assert.Equal(t, now.Add(30*time.Second), next, "the default")
	status, _ = c.get("p", "b")
	assert.Equal(t, v1.ResourceHealthStatusUnknown, status)
	assert.True(t, c.update(now.Add(20*time.Second), list[1:2]), "only that device")
	status, _ = c.get("p", "a")
	assert.Equal(t, v1.ResourceHealthStatusHealthy, status, "a device that is not in the list keeps its health until it expires")
	_, _ = c.expire(now.Add(time.Hour))
	assert.Empty(t, c)
	status, _ = healthCache(nil).get("p", "a")
	assert.Equal(t, v1.ResourceHealthStatusUnknown, status)
}

// dra-12
func TestReportsOfHealthAreBounded(t *testing.T) {
	_, err := reportsOf(make([]*healthv1.DeviceHealth, maxReported+1))
	require.ErrorContains(t, err, "health of 10001 devices")
	for _, bad := range []*healthv1.DeviceHealth{nil, {}, health("p", "", 0, 0, ""), health(repeated(300), "d", 0, 0, "")} {
		_, err = reportsOf([]*healthv1.DeviceHealth{bad})
		require.ErrorContains(t, err, "invalid name")
	}
	r := reportOf(health("p", "d", healthv1.HealthStatus_HEALTHY, 1<<62, strings.Repeat("ü", 1025)))
	assert.Equal(t, maxHealthTimeout, r.timeout)
	assert.Equal(t, strings.Repeat("ü", 1021)+"...", r.message)
	c := healthCache{}
	for i := range maxReported + 5 {
		c.update(time.Unix(0, 0), []deviceReport{{deviceKey: deviceKey{"p", fmt.Sprint(i)}, timeout: time.Second}})
	}
	assert.Len(t, c, maxReported)
}

// dra-4
func TestSlicesAreDeletedAfterAGracePeriod(t *testing.T) {
	now := time.Unix(1_000, 0)
	c := cleanups{}
	c.schedule("b", now.Add(30*time.Second))
	c.schedule("b", now) // no effect
	c.schedule("a", now.Add(10*time.Second))
	due, next := c.due(now)
	assert.Empty(t, due)
	assert.Equal(t, now.Add(10*time.Second), next)
	c.cancel("a")
	due, _ = c.due(now.Add(30 * time.Second))
	assert.Equal(t, []string{"b"}, due)
	due, next = c.due(now.Add(time.Hour))
	assert.Empty(t, due, "it is in progress")
	assert.Zero(t, next)
	var waits []time.Duration
	for range 12 {
		c.attempted("b", now, assert.AnError)
		_, next = c.due(now)
		waits = append(waits, next.Sub(now))
		due, _ = c.due(next)
		require.Equal(t, []string{"b"}, due)
	}
	assert.InDelta(t, 1.1, waits[0].Seconds(), 0.1)
	assert.InDelta(t, 2.2, waits[1].Seconds(), 0.2)
	assert.InDelta(t, 330, waits[11].Seconds(), 30, "at most 5 minutes and the jitter")
	c.attempted("b", now, nil)
	assert.Empty(t, c)
	c.schedule("b", now)
	_, _ = c.due(now)
	c.cancel("b")
	c.attempted("b", now, assert.AnError)
	assert.Empty(t, c, "connected again")
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
