package machine

import (
	"os"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
)

// requestingMemory returns a pod that requests memory.
func requestingMemory(name, memory string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
	pod.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)},
	}}}
	return pod
}

func TestPodsMustFitTheNode(t *testing.T) { // adm-5, adm-7
	reasons := func(pod *v1.Pod, others []*v1.Pod, node admission.Node) (reasons []string) {
		for _, f := range admission.Check(pod, others, node) {
			reasons = append(reasons, f.Reason)
		}
		return reasons
	}
	b := wingtest.Base(t, wingtest.Standalone(t, ""))
	node := admissionNode(b, v1.ResourceList{v1.ResourceMemory: resource.MustParse("4Gi"), v1.ResourceEphemeralStorage: resource.MustParse("1")})
	assert.Empty(t, reasons(requestingMemory("web", "4Gi"), nil, node))
	assert.Equal(t, []string{"OutOfmemory"}, reasons(requestingMemory("web", "5Gi"), nil, node))
	assert.Empty(t, reasons(requestingMemory("web", "400Ti"), nil, admissionNode(b, nil)), "memory is not limited where the machine does not report it")
	assert.Equal(t, []string{"OutOfpods"}, reasons(requestingMemory("web", "0"), slices.Repeat([]*v1.Pod{requestingMemory("other", "0")}, 110), node))
	onDisk := func(amount string) *v1.Pod {
		pod := requestingMemory("web", "0")
		pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(amount)}
		return pod
	}
	assert.Empty(t, reasons(onDisk("1"), nil, node))
	assert.Equal(t, []string{"OutOfephemeral-storage"}, reasons(onDisk("2"), nil, node))
	assert.Empty(t, reasons(onDisk("400Ti"), nil, admissionNode(b, nil)), "it is not limited where the machine does not report it")
	none := wingtest.Base(t, wingtest.Standalone(t, "localStorageCapacityIsolation: false\n"))
	assert.Equal(t, []string{"OutOfephemeral-storage"}, reasons(onDisk("1"), nil, admissionNode(none, nil)))
	c, err := readCapacity(none)
	require.NoError(t, err)
	assert.NotContains(t, c.Total, v1.ResourceEphemeralStorage)
	assert.NotContains(t, c.Allocatable, v1.ResourceEphemeralStorage)
	assert.Equal(t, "n1", node.Labels[v1.LabelHostname])
}

// What eviction reserves by default is not allocatable.
func TestEvictionHardIsReserved(t *testing.T) { // cm-22, ev-9
	if goruntime.GOOS != "linux" {
		t.Skip("the defaults depend on the operating system")
	}
	total := v1.ResourceList{v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourceEphemeralStorage: resource.MustParse("100Gi")}
	for name, tc := range map[string]struct {
		hard  map[string]string
		merge bool
		want  string
	}{
		"default":         {nil, false, "8092Mi"},
		"none":            {map[string]string{}, false, "8Gi"},
		"another signal":  {map[string]string{"nodefs.available": "5%"}, false, "8Gi"},
		"another, merged": {map[string]string{"nodefs.available": "5%"}, true, "8092Mi"},
		"own value":       {map[string]string{"memory.available": "1Gi"}, false, "7Gi"},
	} {
		r, err := reservedOf(&kubeletconfig.KubeletConfiguration{EvictionHard: tc.hard, MergeDefaultEvictionSettings: &tc.merge}, total)
		require.NoError(t, err, name)
		memory := cm.Allocatable(total, r)[v1.ResourceMemory]
		assert.Zero(t, memory.Cmp(resource.MustParse(tc.want)), "%s: %s", name, memory.String())
	}
}

func TestInvalidReservations(t *testing.T) {
	for lines, want := range map[string]string{
		"systemReserved: {gpu: \"1\"}\n":        `--system-reserved value failed to parse: cannot reserve "gpu" resource`,
		"kubeReserved: {memory: much}\n":        `--kube-reserved value failed to parse: failed to parse quantity "much" for "memory" resource: `,
		"kubeReserved: {cpu: \"-1\"}\n":         `--kube-reserved value failed to parse: resource quantity for "cpu" cannot be negative: -1`,
		"reservedSystemCPUs: x\n":               "unable to parse reservedSystemCPUs (--reserved-cpus) x",
		"evictionHard: {memory.available: x}\n": "memory.available",
		"systemReserved: {memory: 1000000Gi}\n": `invalid Node Allocatable configuration. Resource "memory" has a reservation of `,
		"reservedSystemCPUs: \"9999\"\n":        "reserved-cpus: 9999 is not a subset of online-cpus: ",
	} {
		cfg, err := stores.Complete(wingtest.Standalone(t, lines))
		if err == nil {
			_, err = readCapacity(stores.Base{Config: cfg, Configuration: cfg.Configuration})
		}
		assert.ErrorContains(t, err, want, lines)
	}
	c, err := readCapacity(wingtest.Base(t, wingtest.Standalone(t, "systemReserved: {cpu: 1m, memory: 1Mi, pid: \"10\", ephemeral-storage: 1Mi}\nkubeReserved: {cpu: 2m}\n")))
	require.NoError(t, err)
	assert.EqualValues(t, 3, c.Total.Cpu().MilliValue()-c.Allocatable.Cpu().MilliValue())
	assert.True(t, c.Total.StorageEphemeral().Sign() > 0)
}

func TestPolicyOf(t *testing.T) {
	total := v1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi"), "hugepages-x": {}, v1.ResourceCPU: resource.MustParse("1")}
	p, err := policyOf(wingtest.Decode(t, ""), total)
	require.NoError(t, err)
	assert.Equal(t, cm.Policy{CPUPeriod: 100 * time.Millisecond, PodPids: -1, HugePageSizes: []int64{2 << 20}, MemoryQoS: true, PageSize: int64(os.Getpagesize())}, p)

	p, err = policyOf(wingtest.Decode(t, `cpuCFSQuota: false
podPidsLimit: 7
memoryReservationPolicy: TieredReservation
memoryThrottlingFactor: 0.5
qosReserved: {memory: 50%}
`), nil)
	require.NoError(t, err)
	assert.Equal(t, cm.Policy{
		NoCPUQuota: true, CPUPeriod: 100 * time.Millisecond, PodPids: 7, Reserve: cgroups.ReserveTiered,
		MemoryQoS: true, ThrottlingFactor: 0.5, PageSize: int64(os.Getpagesize()), QOSReserved: map[v1.ResourceName]int64{v1.ResourceMemory: 50},
	}, p)
	p, err = policyOf(wingtest.Decode(t, "featureGates: {MemoryQoS: false}\nmemoryReservationPolicy: TieredReservation\nmemoryThrottlingFactor: 0.9\n"), nil)
	require.NoError(t, err)
	assert.Equal(t, cm.Policy{CPUPeriod: 100 * time.Millisecond, PodPids: -1}, p)
	_, err = policyOf(wingtest.Decode(t, "qosReserved: {memory: half}\n"), nil)
	assert.EqualError(t, err, `--qos-reserved value failed to parse: failed to parse percentage "half" for "memory" resource: percentage expected, got 'half'`)
}
