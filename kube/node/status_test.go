package node_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/shutdown"
)

// set reports facts in the status of a node.
func set(t *testing.T, facts node.Facts, n *v1.Node) {
	t.Helper()
	read := func(context.Context) (node.Facts, error) { return facts, nil }
	require.NoError(t, node.Report(read).Set(t.Context(), &node.Draft{Node: n, Now: metav1.Now()}))
}

func TestPressureConditionsMatchTheKubelets(t *testing.T) { // ns-8
	for _, c := range []struct {
		pressure        node.Pressure
		kind            v1.NodeConditionType
		status          v1.ConditionStatus
		reason, message string
	}{
		{node.Pressure{Memory: true}, v1.NodeMemoryPressure, v1.ConditionTrue, "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"},
		{node.Pressure{}, v1.NodeMemoryPressure, v1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{node.Pressure{Disk: true}, v1.NodeDiskPressure, v1.ConditionTrue, "KubeletHasDiskPressure", "kubelet has disk pressure"},
		{node.Pressure{}, v1.NodeDiskPressure, v1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{node.Pressure{PID: true}, v1.NodePIDPressure, v1.ConditionTrue, "KubeletHasInsufficientPID", "kubelet has insufficient PID available"},
		{node.Pressure{}, v1.NodePIDPressure, v1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
	} {
		var n v1.Node
		set(t, node.Facts{Pressure: &c.pressure}, &n)
		got := condition(&n, c.kind)
		assert.Equal(t, c.status, got.Status)
		assert.Equal(t, c.reason, got.Reason)
		assert.Equal(t, c.message, got.Message)
		assert.False(t, got.LastTransitionTime.IsZero())
	}
}

func TestPressureIsReportedOnChangeAndKeepsItsTime(t *testing.T) { // ns-9
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, w.config(), func(*node.Node) {
			after(time.Second)
			w.emitted()
			since := condition(w.object(), v1.NodeMemoryPressure).LastTransitionTime
			for _, step := range []struct {
				is   node.Pressure
				want []string
			}{
				{node.Pressure{Memory: true}, []string{"NodeHasInsufficientMemory"}},
				{node.Pressure{Memory: true}, nil},
				{node.Pressure{Disk: true, PID: true}, []string{"NodeHasSufficientMemory", "NodeHasDiskPressure", "NodeHasInsufficientPID"}},
				{node.Pressure{}, []string{"NodeHasNoDiskPressure", "NodeHasSufficientPID"}},
			} {
				w.set(func(w *world) { w.pressure = step.is })
				after(11 * time.Second)
				var want []string
				for _, reason := range step.want {
					want = append(want, fmt.Sprintf("Normal %s: Node n1 status is now: %s", reason, reason))
				}
				assert.Equal(t, want, w.emitted())
			}
			assert.True(t, condition(w.object(), v1.NodeMemoryPressure).LastTransitionTime.After(since.Time))
		})
	})
}

func TestReadyListsAllErrors(t *testing.T) { // ns-8, ns-10, ns-11
	all := machine()
	all[v1.ResourcePods] = resource.MustParse("10")
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		health   node.Health
		capacity v1.ResourceList
		message  string // "" for KubeletReady
	}{
		"well":     {capacity: all, message: ""},
		"runtime":  {health: node.Health{Runtime: errors.New("container runtime is down")}, capacity: all, message: "container runtime is down"},
		"pleg":     {health: node.Health{Checks: []node.Check{{Name: "PLEG", Err: boom}, {Name: "ok"}}}, capacity: all, message: "PLEG is not healthy: boom"},
		"network":  {health: node.Health{Network: boom}, capacity: all, message: "container runtime network not ready: boom"},
		"storage":  {health: node.Health{Storage: boom}, capacity: all, message: "boom"},
		"shutdown": {health: node.Health{Shutdown: shutdown.ErrShuttingDown}, capacity: all, message: "node is shutting down"},
		"nothing to give out": {
			capacity: v1.ResourceList{}, message: "missing node capacity for resources: cpu, memory, pods, ephemeral-storage",
		},
		"all of it": {
			health:   node.Health{Runtime: errors.New("r"), Checks: []node.Check{{Name: "PLEG", Err: errors.New("p")}}, Network: errors.New("n"), Storage: errors.New("s"), Shutdown: shutdown.ErrShuttingDown},
			capacity: machine(),
			message:  "[r, PLEG is not healthy: p, container runtime network not ready: n, s, node is shutting down, missing node capacity for resources: pods]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var n v1.Node
			n.Status.Capacity = c.capacity
			set(t, node.Facts{Health: c.health}, &n)
			got := condition(&n, v1.NodeReady)
			if c.message == "" {
				assert.Equal(t, []any{v1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"}, []any{got.Status, got.Reason, got.Message})
				return
			}
			assert.Equal(t, []any{v1.ConditionFalse, "KubeletNotReady", c.message}, []any{got.Status, got.Reason, got.Message})
		})
	}
	var n v1.Node
	n.Status.Capacity = maps.Clone(all)
	delete(n.Status.Capacity, v1.ResourceEphemeralStorage)
	without := n.Status.Capacity
	set(t, node.Facts{Machine: &node.Machine{Capacity: without}, NoEphemeralStorage: true}, &n)
	assert.Equal(t, v1.ConditionTrue, condition(&n, v1.NodeReady).Status, "without local storage isolation")
	n = v1.Node{}
	n.Status.Capacity = all
	set(t, node.Facts{Health: node.Health{Warning: "no swap accounting"}}, &n)
	assert.Equal(t, "kubelet is posting ready status. WARNING: no swap accounting", condition(&n, v1.NodeReady).Message)
}

func TestReadinessIsReportedOnChange(t *testing.T) { // ns-11
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		run(t, w, w.config(), func(*node.Node) {
			after(time.Second)
			w.emitted()
			w.set(func(w *world) { w.health.Runtime = errors.New("container runtime is down") })
			after(11 * time.Second)
			assert.Equal(t, []string{"Normal NodeNotReady: Node n1 status is now: NodeNotReady"}, w.emitted())
			w.set(func(w *world) { w.health.Runtime = nil })
			after(11 * time.Second)
			assert.Equal(t, []string{"Normal NodeReady: Node n1 status is now: NodeReady"}, w.emitted())
		})
	})
}

func TestAnAgentThatHasJustStartedLeavesItsNodeAsReadyAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.node = &v1.Node{}
		w.node.Name = "n1"
		w.node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}}
		w.health = node.Health{Unknown: true, Runtime: errors.New("container runtime status check may not have completed yet")}
		run(t, w, w.config(), func(*node.Node) {
			after(28 * time.Second)
			assert.Equal(t, v1.ConditionTrue, condition(w.object(), v1.NodeReady).Status)
			after(15 * time.Second)
			assert.Equal(t, v1.ConditionFalse, condition(w.object(), v1.NodeReady).Status, "for half a minute, not forever")
		})
	})
}

func TestCapacityOfTheMachine(t *testing.T) { // ns-12, ns-14
	q := resource.MustParse
	capacity := machine()
	capacity["hugepages-2Mi"] = q("64Mi")
	m := &node.Machine{
		Capacity: capacity, Allocatable: v1.ResourceList{"cpu": q("3500m"), "memory": q("99Gi")}, MaxPods: 110, PodsPerCore: 10,
		Devices: v1.ResourceList{"example.com/gpu": q("4")}, HealthyDevices: v1.ResourceList{"example.com/gpu": q("3")}, RemovedDevices: []string{"example.com/fpga"},
	}
	var n v1.Node
	n.Status.Capacity = v1.ResourceList{"hugepages-1Gi": q("1Gi"), "example.com/nic": q("7")}
	n.Status.Allocatable = v1.ResourceList{"example.com/lost": q("1")}
	set(t, node.Facts{Machine: m}, &n)
	text := func(l v1.ResourceList) map[string]string {
		out := map[string]string{}
		for name, value := range l {
			out[string(name)] = value.String()
		}
		return out
	}
	assert.Equal(t, map[string]string{
		"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "hugepages-2Mi": "64Mi", "pods": "40",
		"example.com/gpu": "4", "example.com/fpga": "0", "example.com/nic": "7",
	}, text(n.Status.Capacity))
	assert.Equal(t, map[string]string{
		"cpu": "3500m", "memory": "8Gi", "ephemeral-storage": "100Gi", "hugepages-2Mi": "64Mi", "pods": "40",
		"example.com/gpu": "3", "example.com/fpga": "0", "example.com/nic": "7",
	}, text(n.Status.Allocatable), "never more than there is; an extended resource without a plugin is removed")

	m.Capacity = nil // it is unknown
	n = v1.Node{}
	set(t, node.Facts{Machine: m}, &n)
	assert.Equal(t, map[string]string{"cpu": "0", "memory": "0", "pods": "110"}, text(n.Status.Capacity))
	assert.EqualValues(t, 110, node.Pods(64, 10, 110))
}

func TestTheBiggestImagesAreReported(t *testing.T) { // ns-15
	images := []node.Image{
		{ID: "small", Tags: []string{"s:1"}, Size: 1},
		{ID: "big", Digests: []string{"b@1", "b@2", "b@3"}, Tags: []string{"b:1", "b:2", "b:3"}, Size: 9},
		{ID: "untagged", Size: 5},
	}
	facts := node.Facts{Images: images}
	var n v1.Node
	set(t, facts, &n)
	assert.Equal(t, []v1.ContainerImage{
		{Names: []string{"b@1", "b@2", "b@3", "b:1", "b:2"}, SizeBytes: 9}, {Names: []string{"untagged"}, SizeBytes: 5}, {Names: []string{"s:1"}, SizeBytes: 1},
	}, n.Status.Images)
	facts.MaxImages = 1
	set(t, facts, &n)
	assert.Len(t, n.Status.Images, 1)
	for range 100 {
		facts.Images = append(facts.Images, node.Image{ID: fmt.Sprint(len(facts.Images)), Size: 2})
	}
	facts.MaxImages = 0
	set(t, facts, &n)
	assert.Len(t, n.Status.Images, 50)
	facts.MaxImages = -1
	set(t, facts, &n)
	assert.Len(t, n.Status.Images, 103)
	facts.Images = nil
	set(t, facts, &n)
	assert.Empty(t, n.Status.Images)
}

func TestReadInfo(t *testing.T) { // ns-16
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	info, err := node.ReadInfo(fstest.MapFS{
		"etc/machine-id":                 file("m1\n"),
		"proc/sys/kernel/random/boot_id": file("b1\n"),
		"proc/sys/kernel/osrelease":      file("6.1.0\n"),
		"sys/class/dmi/id/product_uuid":  file("u1\n"),
		"etc/os-release":                 file("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
		"proc/meminfo":                   file("MemTotal: 1 kB\nSwapTotal:     2048 kB\n"),
		"proc/self/uid_map":              file("         0          0 4294967295\n"),
	})
	require.NoError(t, err)
	assert.Equal(t, new(false), info.RunningInUserNamespace)
	assert.Equal(t, []string{"m1", "b1", "6.1.0", "u1", "Debian GNU/Linux 12 (bookworm)"},
		[]string{info.MachineID, info.BootID, info.KernelVersion, info.SystemUUID, info.OSImage})
	assert.EqualValues(t, 2<<20, *info.Swap.Capacity)
	assert.Equal(t, "containerd://2.4.2", node.RuntimeVersion("containerd", "2.4.2"))
	assert.Equal(t, "containerd://Unknown", node.RuntimeVersion("containerd", ""))
	assert.Equal(t, "containerd://2.4.2+unknown", node.RuntimeVersion("containerd", "2.4.2+unknown"))
	assert.Equal(t, "containerd://1.6.20", node.RuntimeVersion("containerd", "1.6.20~ds1"), "not semantic")
	assert.Equal(t, "fake://main", node.RuntimeVersion("fake", "main"))

	info, err = node.ReadInfo(fstest.MapFS{"etc/machine-id": file("m1"), "etc/os-release": file("PRETTY_NAME='x'"), "proc/self/uid_map": file("0 100000 65536\n")})
	assert.ErrorContains(t, err, "boot_id")
	assert.Equal(t, new(true), info.RunningInUserNamespace)
	inside, err := node.InUserNamespace(fstest.MapFS{"proc/self/uid_map": file("")})
	require.NoError(t, err)
	assert.True(t, inside, "no user is mapped yet")
	_, err = node.InUserNamespace(fstest.MapFS{})
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.Equal(t, []string{"m1", "m1", "x"}, []string{info.MachineID, info.SystemUUID, info.OSImage}, "the readable values are set")
}

func TestARebootIsReported(t *testing.T) { // ns-13
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.node = &v1.Node{}
		w.node.Name, w.node.Status.NodeInfo.BootID = "n1", "before"
		w.adjust = func(f *node.Facts) { f.Info = &v1.NodeSystemInfo{BootID: "now"} }
		run(t, w, w.config(), func(*node.Node) {
			after(time.Minute)
			assert.Equal(t, 1, count(w.emitted(), "Warning Rebooted: Node n1 has been rebooted, boot id: now"))
		})
	})
}

func count(list []string, what string) (n int) {
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

func TestHandlersFeaturesAndVolumesAreReported(t *testing.T) { // ns-17
	var n v1.Node
	handler := func(name string, readOnly, users bool) v1.NodeRuntimeHandler {
		return v1.NodeRuntimeHandler{Name: name, Features: &v1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &readOnly, UserNamespaces: &users}}
	}
	handlers := []v1.NodeRuntimeHandler{handler("", true, false), handler("kata", false, true)}
	set(t, node.Facts{
		Runtime: &runtime.Features{
			Handlers: map[string]runtime.HandlerFeatures{"kata": {UserNamespaces: true}, "": {RecursiveReadOnlyMounts: true}}, SupplementalGroupsPolicy: true,
		},
		VolumesInUse: []v1.UniqueVolumeName{"csi/x"},
		KubeletPort:  10250,
		Declared:     []string{"ExtendWebSocketsToKubelet"},
	}, &n)
	assert.Equal(t, handlers, n.Status.RuntimeHandlers)
	assert.True(t, *n.Status.Features.SupplementalGroupsPolicy)
	assert.Equal(t, []v1.UniqueVolumeName{"csi/x"}, n.Status.VolumesInUse)
	assert.EqualValues(t, 10250, n.Status.DaemonEndpoints.KubeletEndpoint.Port)
	assert.Equal(t, []string{"ExtendWebSocketsToKubelet"}, n.Status.DeclaredFeatures)
	set(t, node.Facts{}, &n)
	assert.Equal(t, handlers, n.Status.RuntimeHandlers, "not known: as before")
	set(t, node.Facts{Runtime: &runtime.Features{Unreported: true}}, &n)
	assert.Nil(t, n.Status.RuntimeHandlers)
	assert.Nil(t, n.Status.Features)
}

// network implements node.Network. Without hosts no host is found.
type network struct {
	interfaces, hosts []net.IP
	route             string
}

func (n network) Interfaces() ([]net.IP, error) { return n.interfaces, nil }

func (n network) Lookup(context.Context, string) ([]net.IP, error) {
	if n.hosts == nil {
		return nil, errors.New("no such host")
	}
	return n.hosts, nil
}

func (n network) Default(net.IP) (net.IP, error) {
	if n.route == "" {
		return nil, errors.New("no default routes")
	}
	return net.ParseIP(n.route), nil
}

func TestAddressesAreFoundInOrder(t *testing.T) { // ns-18
	ip := net.ParseIP
	ips := func(list ...string) (out []net.IP) {
		for _, s := range list {
			out = append(out, ip(s))
		}
		return out
	}
	on := func(list ...string) network { return network{interfaces: ips(list...)} }
	dns := func(n network, list ...string) network { n.hosts = ips(list...); return n }
	const route = "10.0.0.9"
	for name, c := range map[string]struct {
		cfg  node.AddressConfig
		want []string // InternalIPs
		err  string
	}{
		"given":                     {cfg: node.AddressConfig{NodeIPs: []net.IP{ip("10.0.0.1")}, Network: on("10.0.0.1")}, want: []string{"10.0.0.1"}},
		"two given":                 {cfg: node.AddressConfig{NodeIPs: []net.IP{ip("10.0.0.1"), ip("fd00::1")}, Network: on("fd00::1", "10.0.0.1")}, want: []string{"10.0.0.1", "fd00::1"}},
		"given, not here":           {cfg: node.AddressConfig{NodeIPs: []net.IP{ip("10.0.0.1")}, Network: on("10.0.0.2")}, err: `"10.0.0.1" not found in the host's network interfaces`},
		"given loopback":            {cfg: node.AddressConfig{NodeIPs: []net.IP{ip("127.0.0.1")}}, err: "loopback"},
		"given multicast":           {cfg: node.AddressConfig{NodeIPs: []net.IP{ip("224.0.0.1")}}, err: "multicast"},
		"given link-local":          {cfg: node.AddressConfig{NodeIPs: []net.IP{ip("169.254.0.1")}}, err: "link-local"},
		"two given, one all zeros":  {cfg: node.AddressConfig{NodeIPs: []net.IP{ip("10.0.0.1"), ip("::")}, Network: on("10.0.0.1")}, err: "all zeros"},
		"no address":                {cfg: node.AddressConfig{NodeIPs: []net.IP{{1}}}, err: "valid IP address"},
		"hostname":                  {cfg: node.AddressConfig{Hostname: "10.0.0.3", Network: on("10.0.0.3")}, want: []string{"10.0.0.3"}},
		"DNS, first of IPv4":        {cfg: node.AddressConfig{Network: dns(on("fd00::1", "10.0.0.1"), "fd00::1", "10.0.0.2", "10.0.0.1")}, want: []string{"10.0.0.1"}},
		"DNS, IPv6 preferred":       {cfg: node.AddressConfig{NodeIPs: []net.IP{net.IPv6zero}, Network: dns(on("fd00::1", "10.0.0.1"), "10.0.0.1", "fd00::1")}, want: []string{"fd00::1"}},
		"DNS, the other":            {cfg: node.AddressConfig{Network: dns(on("fd00::1"), "fd00::1")}, want: []string{"fd00::1"}},
		"DNS, not here, then route": {cfg: node.AddressConfig{Network: dns(network{interfaces: ips("10.0.0.1"), route: route}, "10.7.7.7")}, want: []string{"10.0.0.9"}},
		"no DNS, then route":        {cfg: node.AddressConfig{Network: network{route: route}}, want: []string{"10.0.0.9"}},
		"nothing":                   {cfg: node.AddressConfig{Network: network{}}, err: "can't get ip address of node n1: no default routes"},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.NodeName = "n1"
			got, err := c.cfg.Addresses(t.Context())
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var want []v1.NodeAddress
			for _, s := range c.want {
				want = append(want, v1.NodeAddress{Type: v1.NodeInternalIP, Address: s})
			}
			hostname := c.cfg.Hostname
			if hostname == "" {
				hostname = "n1"
			}
			require.Equal(t, append(want, v1.NodeAddress{Type: v1.NodeHostName, Address: hostname}), got)
		})
	}
}

func TestLabelsAndTaintsAreReadAsTheKubeletReadsThem(t *testing.T) {
	labels, err := node.ParseLabels("rack=7, node.kubernetes.io/role=x,topology.kubernetes.io/zone=z,example.com/a=")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"rack": "7", "node.kubernetes.io/role": "x", "topology.kubernetes.io/zone": "z", "example.com/a": ""}, labels)
	for _, bad := range []string{"rack", "a b=c", "node-role.kubernetes.io/control-plane=", "node-restriction.kubernetes.io/x=y", "k8s.io/x=y", "a=b c"} {
		_, err := node.ParseLabels(bad)
		assert.ErrorContains(t, err, "label", bad)
	}
	taints, err := node.ParseTaints("a=b:NoSchedule,c:NoExecute, a=b:PreferNoSchedule")
	require.NoError(t, err)
	assert.Equal(t, []v1.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}, {Key: "a", Value: "b", Effect: "PreferNoSchedule"}}, taints)
	for _, bad := range []string{"a", "a=b", "a=b:Never", "a b:NoSchedule", "a=1:NoSchedule,a=2:NoSchedule"} {
		_, err := node.ParseTaints(bad)
		assert.ErrorContains(t, err, "taint", bad)
	}
}

func FuzzLabelsAndTaints(f *testing.F) {
	f.Add("a=b,c=d")
	f.Add("a=b:NoSchedule")
	f.Fuzz(func(t *testing.T, s string) {
		if labels, err := node.ParseLabels(s); err == nil {
			for k := range labels {
				require.NotEmpty(t, k)
			}
		}
		if taints, err := node.ParseTaints(s); err == nil {
			for _, taint := range taints {
				require.NotEmpty(t, taint.Effect)
			}
		}
	})
}
