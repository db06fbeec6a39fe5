package podconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// podWith returns a pod of one container with these requests and limits.
func podWith(requests, limits v1.ResourceList) *v1.Pod {
	return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{
		Name: "c", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits},
	}}}}
}

func memoryOf(n Node, pod *v1.Pod) (unified map[string]string, memory, memorySwap int64) {
	r := containerResources(PodInput{Node: n, Pod: pod}, &pod.Spec.Containers[0])
	return r.Unified, r.MemoryLimitInBytes, r.MemorySwapLimitInBytes
}

func TestPodLevelLimits(t *testing.T) {
	pod := func(own, whole v1.ResourceList) *v1.Pod {
		p := podWith(nil, own)
		p.Spec.Resources = &v1.ResourceRequirements{Limits: whole}
		return p
	}
	for _, tc := range []struct {
		name                  string
		own, whole            v1.ResourceList
		shares, quota, memory int64
	}{
		{"nothing", nil, nil, 2, 0, 0},
		{"bounds a container without cm-33", nil, list("2", "1Gi"), 2048, 200000, 1 << 30},
		{"not one with its own cm-33", list("1", "512Mi"), list("2", "1Gi"), 1024, 100000, 512 << 20},
		{"each on its own cm-33", list("1", ""), list("2", "1Gi"), 1024, 100000, 1 << 30},
		{"a limit of zero is no limit cm-33", list("0", "0"), list("2", "1Gi"), 2048, 200000, 1 << 30},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := pod(tc.own, tc.whole)
			before := p.DeepCopy()
			r := containerResources(PodInput{Pod: p}, &p.Spec.Containers[0])
			assert.Equal(t, []int64{tc.shares, tc.quota, tc.memory}, []int64{r.CpuShares, r.CpuQuota, r.MemoryLimitInBytes})
			assert.Equal(t, before, p)
		})
	}
}

func TestOOMGroups(t *testing.T) {
	for _, tc := range []struct {
		name string
		node Node
		want map[string]string
	}{
		{"all of the container cm-34", Node{CgroupVersion: 2}, map[string]string{"memory.oom.group": "1", "memory.high": "max"}},
		{"one process, as configured cm-34", Node{CgroupVersion: 2, SingleProcessOOMKill: true}, map[string]string{"memory.high": "max"}},
		{"one process on v1 cm-34", Node{CgroupVersion: 1}, nil},
		{"unknown", Node{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			unified, _, _ := memoryOf(tc.node, podWith(nil, nil))
			assert.Equal(t, tc.want, unified)
		})
	}
}

func TestScoresWithResourcesOfThePod(t *testing.T) { // cm-36
	const capacity = 8 << 30
	pod := &v1.Pod{Spec: v1.PodSpec{
		Resources: &v1.ResourceRequirements{Requests: list("", "4Gi")},
		Containers: []v1.Container{
			{Name: "a", Resources: v1.ResourceRequirements{Requests: list("", "1Gi")}},
			{Name: "b"},
		},
		InitContainers: []v1.Container{
			{Name: "i", Resources: v1.ResourceRequirements{Requests: list("", "3Gi")}},
			{Name: "s", RestartPolicy: new(v1.ContainerRestartPolicyAlways)},
		},
	}}
	// The remaining 3Gi are shared by a, b and the sidecar s.
	for c, want := range map[*v1.Container]int64{
		&pod.Spec.Containers[0]: 750, &pod.Spec.Containers[1]: 875, &pod.Spec.InitContainers[1]: 875, &pod.Spec.InitContainers[0]: 500,
	} {
		assert.Equal(t, want, oomScoreAdj(Node{MemoryBytes: capacity}, pod, c), c.Name)
	}
	pod.Spec.Resources.Requests = list("", "512Mi") // less than its containers ask for
	assert.Equal(t, int64(875), oomScoreAdj(Node{MemoryBytes: capacity}, pod, &pod.Spec.Containers[0]))
}

func TestHugePages(t *testing.T) { // cm-37
	limit := v1.ResourceList{"hugepages-2Mi": resource.MustParse("64Mi"), "hugepages-1Ti": resource.MustParse("1Ti"), "hugepages-x": resource.MustParse("1")}
	got := map[string]uint64{}
	pod := podWith(nil, limit)
	for _, l := range containerResources(PodInput{Node: Node{HugePageSizes: []int64{64 << 10, 2 << 20, 1 << 30, 1000}}, Pod: pod}, &pod.Spec.Containers[0]).HugepageLimits {
		got[l.PageSize] = l.Limit
	}
	assert.Equal(t, map[string]uint64{"64KB": 0, "2MB": 64 << 20, "1GB": 0, "1000B": 0}, got)
	assert.Empty(t, containerResources(PodInput{Pod: pod}, &pod.Spec.Containers[0]).HugepageLimits)
}

func TestMemoryQoS(t *testing.T) {
	qos := func(q MemoryQoS) Node {
		q.Enabled = true
		return Node{CgroupVersion: 2, SingleProcessOOMKill: true, AllocatableMemory: 1000 << 20, MemoryBytes: 2000 << 20, MemoryQoS: q}
	}
	off, v1cgroup := qos(MemoryQoS{}), qos(MemoryQoS{})
	off.MemoryQoS.Enabled, v1cgroup.CgroupVersion = false, 1
	memoryOnly := qos(MemoryQoS{ThrottlingFactor: 0.9})
	memoryOnly.AllocatableMemory = 0
	all := list("1", "100Mi")
	unreserved := func(high string) map[string]string {
		out := map[string]string{"memory.min": "0", "memory.low": "0"}
		if high != "" {
			out["memory.high"] = high
		}
		return out
	}
	for _, tc := range []struct {
		name             string
		node             Node
		requests, limits v1.ResourceList
		want             map[string]string
	}{
		{"off", off, list("", "100Mi"), list("", "200Mi"), map[string]string{"memory.high": "max"}},
		{"cgroup v1", v1cgroup, list("", "100Mi"), list("", "200Mi"), nil},
		{"nine tenths between request and limit cm-38", qos(MemoryQoS{ThrottlingFactor: 0.9}), list("", "100Mi"), list("", "200Mi"), unreserved("199229440")},
		{"to the node's allocatable memory cm-38", qos(MemoryQoS{ThrottlingFactor: 0.9}), list("", "100Mi"), nil, unreserved("954204160")},
		{"to the machine's memory", memoryOnly, list("", "100Mi"), nil, unreserved("1897922560")},
		{"half between request and limit cm-38", qos(MemoryQoS{ThrottlingFactor: 0.5}), list("", "100Mi"), list("", "200Mi"), unreserved("157286400")},
		{"not throttled without a factor cm-38", qos(MemoryQoS{}), list("", "100Mi"), list("", "200Mi"), unreserved("")},
		{"up to the limit cm-38", qos(MemoryQoS{ThrottlingFactor: 1}), list("", "100Mi"), list("", "200Mi"), unreserved("209715200")},
		{"whole pages cm-38", qos(MemoryQoS{ThrottlingFactor: 0.9, PageSize: 65536}), list("", "100Mi"), list("", "150000001"), unreserved("145424384")},
		{"best effort cm-38", qos(MemoryQoS{ThrottlingFactor: 0.9}), nil, nil, unreserved("943718400")},
		{"request and limit are the same cm-38", qos(MemoryQoS{ThrottlingFactor: 0.9}), all, all, unreserved("")},
		{"not above the request cm-38", qos(MemoryQoS{ThrottlingFactor: 0.9}), list("", "100Mi"), list("", "104858600"), unreserved("")},
		{"no memory is protected cm-39", qos(MemoryQoS{Reserve: cgroups.ReserveNone}), all, all, unreserved("")},
		{"no request to protect cm-39", qos(MemoryQoS{Reserve: cgroups.ReserveTiered}), list("1", ""), nil, unreserved("")},
		{"for guaranteed pods cm-39", qos(MemoryQoS{Reserve: cgroups.ReserveTiered}), all, all, map[string]string{"memory.min": "104857600"}},
		{"for burstable pods cm-39", qos(MemoryQoS{Reserve: cgroups.ReserveTiered}), list("", "100Mi"), list("", "100Mi"), map[string]string{"memory.low": "104857600"}},
		{"for all, as before 1.36 cm-38", qos(MemoryQoS{Reserve: cgroups.ReserveAll}), list("", "100Mi"), list("", "100Mi"), map[string]string{"memory.min": "104857600"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			unified, _, _ := memoryOf(tc.node, podWith(tc.requests, tc.limits))
			assert.Equal(t, tc.want, unified)
		})
	}

	// A container without a limit of its own is throttled with its pod, not by itself.
	for name, tc := range map[string]struct {
		pod, container v1.ResourceList
		want           map[string]string
	}{
		"limit of the pod":                {list("", "400Mi"), nil, unreserved("")},
		"limit of the pod and of its own": {list("", "400Mi"), list("", "200Mi"), unreserved("199229440")},
		"pod with another limit":          {list("1", ""), nil, unreserved("954204160")},
	} {
		pod := podWith(list("", "100Mi"), tc.container)
		pod.Spec.Resources = &v1.ResourceRequirements{Limits: tc.pod}
		unified, _, _ := memoryOf(qos(MemoryQoS{ThrottlingFactor: 0.9}), pod)
		assert.Equal(t, tc.want, unified, name)
	}
}

func TestSwap(t *testing.T) {
	node := func(cgroup int, limited bool) Node {
		return Node{
			CgroupVersion: cgroup, SingleProcessOOMKill: true, MemoryBytes: 3 << 30,
			Swap: Swap{Controller: true, Limited: limited, Bytes: 1 << 30},
		}
	}
	without := node(2, true)
	without.Swap.Controller = false
	unknown := node(2, true)
	unknown.MemoryBytes = 0
	burst := podWith(list("", "1Gi"), list("", "2Gi"))
	critical := burst.DeepCopy()
	critical.Spec.Priority = new(int32(2_000_000_000))
	nearly := burst.DeepCopy()
	nearly.Spec.Priority = new(int32(1_999_999_999))
	static := burst.DeepCopy()
	static.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.source": "file"}}
	mirror := burst.DeepCopy()
	mirror.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.mirror": "x"}}
	all := list("1", "1Gi")
	for _, tc := range []struct {
		name string
		node Node
		pod  *v1.Pod
		max  string // memory.swap.max, "" for none
		both int64  // memory and swap
	}{
		{"no controller cm-40", without, burst, "", 0},
		{"swap disabled cm-40", node(2, false), burst, "0", 0},
		{"swap disabled on v1 cm-40", node(1, false), burst, "", 2 << 30},
		{"limited needs v2 cm-41", node(1, true), burst, "", 2 << 30},
		{"an unknown version", node(0, true), burst, "", 0},
		{"a third of the memory, a third of the swap cm-42", node(2, true), burst, "357913941", 0},
		{"critical cm-41", node(2, true), critical, "0", 0},
		{"nearly critical cm-41", node(2, true), nearly, "357913941", 0},
		{"static cm-41", node(2, true), static, "0", 0},
		{"a static pod's mirror cm-41", node(2, true), mirror, "0", 0},
		{"guaranteed cm-41", node(2, true), podWith(all, all), "0", 0},
		{"best effort cm-41", node(2, true), podWith(nil, nil), "0", 0},
		{"burstable, of no memory cm-41", node(2, true), podWith(list("1", ""), nil), "0", 0},
		{"its limit is its request cm-41", node(2, true), podWith(list("", "1Gi"), list("", "1Gi")), "0", 0},
		{"more than the capacity cm-42", node(2, true), podWith(list("", "4Gi"), nil), "0", 0},
		{"of an unknown amount of memory", unknown, burst, "0", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			unified, _, both := memoryOf(tc.node, tc.pod)
			assert.Equal(t, tc.max, unified["memory.swap.max"])
			assert.Equal(t, tc.both, both)
			if tc.node.MemoryBytes > tc.pod.Spec.Containers[0].Resources.Requests.Memory().Value() {
				assert.Equal(t, tc.max != "" && tc.max != "0", tc.node.MaySwap(tc.pod, &tc.pod.Spec.Containers[0]))
			}
		})
	}
}
