package eviction_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/runtime"
)

func bytesOf(text string) *uint64 {
	q := resource.MustParse(text)
	return new(uint64(q.Value()))
}

// lowMemory is a node with the given pods and 100Mi too little available memory.
func lowMemory(pods ...*v1.Pod) eviction.Inputs {
	in := eviction.Inputs{
		Now: noon, Pods: pods,
		Policy: eviction.Policy{Thresholds: []eviction.Threshold{{Signal: "memory.available", Value: eviction.Value{Quantity: new(resource.MustParse("200Mi"))}}}},
		Summary: &statsapi.Summary{Node: statsapi.NodeStats{Memory: &statsapi.MemoryStats{
			Time: metav1.NewTime(noon.Add(-time.Second)), AvailableBytes: bytesOf("100Mi"), WorkingSetBytes: bytesOf("924Mi"),
		}}},
	}
	for _, pod := range pods {
		in.Summary.Pods = append(in.Summary.Pods, statsapi.PodStats{
			PodRef: statsapi.PodReference{UID: string(pod.UID)}, Memory: &statsapi.MemoryStats{WorkingSetBytes: bytesOf("300Mi")},
		})
	}
	return in
}

func TestTheMessageOfAnEvictionIsTheKubelets(t *testing.T) { // ev-53, ev-54, ev-55, ev-57
	pod := podOf("web")
	pod.Spec.InitContainers = []v1.Container{{Name: "sidecar"}}
	pod.Spec.Containers = []v1.Container{
		{Name: "a", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"memory": resource.MustParse("100Mi")}}},
		{Name: "b", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"memory": resource.MustParse("100Mi")}}},
		{Name: "c"}, {Name: "unmeasured"},
	}
	in := lowMemory(pod)
	used := func(name, memory string) statsapi.ContainerStats {
		return statsapi.ContainerStats{Name: name, Memory: &statsapi.MemoryStats{WorkingSetBytes: bytesOf(memory)}}
	}
	in.Summary.Pods[0].Containers = []statsapi.ContainerStats{used("c", "1Mi"), used("b", "100Mi"), used("a", "150Mi"), used("sidecar", "49Mi"), {Name: "unmeasured"}}
	e := in.Plan().Victim(0)
	const message = "The node was low on resource: memory. Threshold quantity: 200Mi, available: 100Mi. " +
		"Container sidecar was using 49Mi, request is 0, has larger consumption of memory. " +
		"Container a was using 150Mi, request is 100Mi, has larger consumption of memory. " +
		"Container c was using 1Mi, request is 0, has larger consumption of memory. "
	assert.Equal(t, message, e.Message)
	assert.Equal(t, runtime.Termination{Failed: true, Reason: "Evicted", Message: message, Disruption: message}, e.Termination())
	event := e.Event()
	explanation := event.Annotations["eviction.kubeparts.io/explanation"]
	delete(event.Annotations, "eviction.kubeparts.io/explanation")
	assert.Equal(t, runtime.Event{
		Object: runtime.PodRef(pod), Type: "Warning", Reason: "Evicted", Message: message,
		Annotations: map[string]string{"offending_containers": "sidecar,a,c", "offending_containers_usage": "49Mi,150Mi,1Mi", "starved_resource": "memory"},
	}, event)
	assert.EqualValues(t, 1, e.GracePeriodSeconds)

	t.Run("and explains itself", func(t *testing.T) {
		back := new(eviction.Explanation)
		require.NoError(t, json.Unmarshal([]byte(explanation), back))
		assert.Equal(t, e.Explanation, back)
		assert.EqualValues(t, 100<<20, back.Deficit)
		assert.EqualValues(t, "web-uid", back.Victim.UID)
		assert.EqualValues(t, 300<<20, back.Victim.Usage)
	})
	t.Run("ev-50 a pod over its own limit has no disruption condition", func(t *testing.T) {
		local := eviction.Victim{Pod: pod, Message: "m"}
		assert.Equal(t, runtime.Termination{Failed: true, Reason: "Evicted", Message: "m"}, local.Termination())
		assert.Empty(t, local.Event().Annotations)
	})
	t.Run("ev-55 the pod as a whole", func(t *testing.T) {
		in := in
		in.Summary.Pods[0].Memory = &statsapi.MemoryStats{WorkingSetBytes: bytesOf("300Mi")}
		p := pod.DeepCopy()
		p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{"memory": resource.MustParse("250Mi")}}
		in.Pods = []*v1.Pod{p}
		e := in.Plan().Victim(0)
		assert.Equal(t, strings.Replace(message, "Container sidecar", "Pod web was using 300Mi, request is 250Mi, has larger consumption of memory. Container sidecar", 1), e.Message)
		assert.Equal(t, "web", e.Annotations["offending_pod"])
		assert.Equal(t, "300Mi", e.Annotations["offending_pod_usage"])
		p.Spec.Resources.Requests = v1.ResourceList{"cpu": resource.MustParse("1")}
		e = in.Plan().Victim(0)
		assert.Equal(t, message, e.Message)
		assert.NotContains(t, e.Annotations, "offending_pod")
	})
	t.Run("ev-55 nothing per container for pids", func(t *testing.T) {
		in.Policy.Thresholds[0] = eviction.Threshold{Signal: "pid.available", Value: eviction.Value{Percentage: 0.5}}
		in.Summary.Node.Rlimit = &statsapi.RlimitStats{MaxPID: new(int64(100)), NumOfRunningProcesses: new(int64(90))}
		e := in.Plan().Victim(0)
		assert.Equal(t, "The node was low on resource: pids. Threshold quantity: 50, available: 10. ", e.Message)
		assert.Equal(t, "", e.Annotations["offending_containers"])
		assert.Equal(t, "pids", e.Annotations["starved_resource"])
	})
}

func TestThePodHasItsGracePeriodForASoftThreshold(t *testing.T) { // ev-52
	for name, tc := range map[string]struct {
		own       *int64
		most      int64
		overwrite bool
		want      int64
	}{
		"its own is shorter":             {new(int64(5)), 30, false, 5},
		"the longest is shorter":         {new(int64(50)), 30, false, 30},
		"it has none":                    {nil, 30, false, 30},
		"overwritten":                    {new(int64(5)), 30, true, 30},
		"no pod has any":                 {new(int64(5)), 0, false, 0},
		"its own is zero":                {new(int64(0)), 30, false, 0},
		"a kubelet's default, unlimited": {new(int64(30)), 600, false, 30},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf("web")
			pod.Spec.TerminationGracePeriodSeconds = tc.own
			in := lowMemory(pod)
			in.Policy.MaxPodGracePeriod, in.Policy.OverwriteGrace = tc.most, tc.overwrite
			in.Policy.Thresholds[0].GracePeriod = time.Minute
			in.Last = in.Plan()
			in.Now = noon.Add(time.Minute)
			in.Summary.Node.Memory.Time = metav1.NewTime(noon.Add(30 * time.Second))
			assert.Equal(t, tc.want, in.Plan().Victim(0).GracePeriodSeconds)
		})
	}
}

func TestClocksMayBeSetBack(t *testing.T) { // ev-19, ev-20, ev-22
	in := lowMemory(podOf("web"))
	first := in.Plan()
	require.NotNil(t, first.Chosen)

	in.Last, in.Now = first, noon.Add(-time.Hour)
	in.Summary.Node.Memory.Time = metav1.NewTime(noon.Add(-time.Hour))
	back := in.Plan()
	require.NotNil(t, back.Chosen, "its figures are not old: the last ones are of the future")
	assert.Equal(t, in.Now, back.Chosen.Since)

	in.Last = back
	in.Summary = &statsapi.Summary{}
	in.Now = in.Now.Add(5 * time.Minute)
	assert.Empty(t, in.Plan().Conditions, "it does not last for an hour more")

	soft := lowMemory(podOf("web"))
	soft.Policy.Thresholds[0].GracePeriod = time.Minute
	soft.Last = soft.Plan()
	soft.Now = noon.Add(-time.Hour)
	again := soft.Plan()
	require.Nil(t, again.Chosen)
	soft.Last, soft.Now = again, soft.Now.Add(time.Minute)
	soft.Summary.Node.Memory.Time = metav1.Time{} // a zero time always counts as new
	assert.NotNil(t, soft.Plan().Chosen, "the grace period counts from the new time")
}

func TestTheSourceOfMemoryFiguresIsConfigurable(t *testing.T) { // #43916
	in := lowMemory(podOf("web"))
	require.NotNil(t, in.Plan().Chosen, "much of the working set is cache")
	in.Memory = &eviction.Observation{Available: 600 << 20, Capacity: 1 << 30, At: noon}
	assert.Nil(t, in.Plan().Chosen, "which the kernel reports as reclaimable")
	in.Memory.Available = -1
	p := in.Plan()
	assert.Nil(t, p.Chosen)
	assert.Equal(t, "available -1 of 1073741824", p.Invalid[0].Err.Error())

	measure := eviction.MemAvailable(fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal:  2048 kB\nMemFree: 1 kB\nMemAvailable:\t1024 kB\n")}})
	figure, err := measure(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1<<20, figure.Available)
	assert.EqualValues(t, 2<<20, figure.Capacity)
	for text, want := range map[string]string{
		"MemTotal: 1 kB\n":                      "proc/meminfo: no field MemAvailable:",
		"MemTotal: x kB\nMemAvailable: 1 kB\n":  `proc/meminfo: invalid MemTotal: "x"`,
		"MemTotal: -1 kB\nMemAvailable: 1 kB\n": `proc/meminfo: invalid MemTotal: "-1"`,
	} {
		_, err := eviction.MemAvailable(fstest.MapFS{"proc/meminfo": {Data: []byte(text)}})(t.Context())
		assert.ErrorContains(t, err, want)
	}
	_, err = eviction.MemAvailable(fstest.MapFS{})(t.Context())
	assert.Error(t, err)
}

func TestFiguresThatAreMissingOrImpossible(t *testing.T) { // ev-14, ev-47
	pod := podOf("web")
	limit := resource.MustParse("1Ki")
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &limit}}}}
	pod.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: limit}
	for name, stats := range map[string]statsapi.PodStats{
		"nothing":          {},
		"no bytes":         {VolumeStats: []statsapi.VolumeStats{{Name: "data"}}, EphemeralStorage: &statsapi.FsStats{}, Containers: []statsapi.ContainerStats{{Name: "main"}}},
		"below zero":       {VolumeStats: []statsapi.VolumeStats{{Name: "data", FsStats: statsapi.FsStats{UsedBytes: new(uint64(math.MaxUint64))}}}},
		"layer below zero": {Containers: []statsapi.ContainerStats{{Name: "main", Rootfs: &statsapi.FsStats{UsedBytes: new(uint64(math.MaxUint64 - 5))}}}},
		"logs unknown":     {Containers: []statsapi.ContainerStats{{Name: "main", Logs: &statsapi.FsStats{}}, {Name: "ghost"}}},
		"another's volume": {VolumeStats: []statsapi.VolumeStats{{Name: "other", FsStats: statsapi.FsStats{UsedBytes: bytesOf("1Gi")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			stats.PodRef.UID = string(pod.UID)
			p := eviction.Inputs{Now: noon, Pods: []*v1.Pod{pod, nil}, Summary: &statsapi.Summary{Pods: []statsapi.PodStats{stats}}}.Plan()
			assert.Empty(t, p.Local)
		})
	}
	assert.Empty(t, eviction.Inputs{}.Plan().Met)
	assert.Empty(t, eviction.Inputs{Pods: []*v1.Pod{pod}}.Plan().Local)
	seen, invalid := eviction.Observe(&statsapi.Summary{Node: statsapi.NodeStats{
		Fs: &statsapi.FsStats{AvailableBytes: new(uint64(0)), CapacityBytes: new(uint64(0)), InodesFree: new(uint64(0)), Inodes: new(uint64(0))},
	}}, nil, 0)
	assert.Empty(t, seen)
	assert.Equal(t, []eviction.Observation{{Signal: "nodefs.available", Err: errors.New("capacity is zero")}}, invalid, "some file systems count no inodes")
}

// A pod whose figures are missing because the measurement failed is not evicted for
// it; with a complete summary ev-41 applies.
func TestAPodIsNotEvictedForMissingFigures(t *testing.T) {
	stats := func(mod func(*statsapi.PodStats)) *statsapi.PodStats {
		s := &statsapi.PodStats{
			Memory:       &statsapi.MemoryStats{WorkingSetBytes: new(uint64(5))},
			ProcessStats: &statsapi.ProcessStats{ProcessCount: new(uint64(5))},
			Containers: []statsapi.ContainerStats{{
				Name: "main", Rootfs: &statsapi.FsStats{UsedBytes: new(uint64(5)), InodesUsed: new(uint64(5))},
				Logs: &statsapi.FsStats{UsedBytes: new(uint64(0)), InodesUsed: new(uint64(0))},
			}},
		}
		mod(s)
		return s
	}
	for name, tc := range map[string]struct {
		lacks    func(*statsapi.PodStats) // nil: the pod is not in the summary
		signal   eviction.Signal
		measured bool
	}{
		"a pod, of memory":     {nil, "memory.available", false},
		"a pod, of a disk":     {nil, "nodefs.available", false},
		"a pod, of processes":  {nil, "pid.available", false},
		"memory":               {func(s *statsapi.PodStats) { s.Memory = nil }, "memory.available", false},
		"memory, of a disk":    {func(s *statsapi.PodStats) { s.Memory = nil }, "nodefs.available", true},
		"processes":            {func(s *statsapi.PodStats) { s.ProcessStats = nil }, "pid.available", false},
		"processes, of memory": {func(s *statsapi.PodStats) { s.ProcessStats = nil }, "memory.available", true},
		"disks":                {func(s *statsapi.PodStats) { s.Containers[0] = statsapi.ContainerStats{Name: "main"} }, "nodefs.available", false},
		"disks, of memory":     {func(s *statsapi.PodStats) { s.Containers = nil }, "memory.available", true},
		"layers":               {func(s *statsapi.PodStats) { s.Containers[0].Rootfs = nil }, "nodefs.available", true},
		"inodes": {func(s *statsapi.PodStats) {
			s.Containers[0].Rootfs.InodesUsed, s.Containers[0].Logs.InodesUsed = nil, nil
		}, "nodefs.inodesFree", false},
		"nothing": {func(*statsapi.PodStats) {}, "nodefs.inodesFree", true},
	} {
		t.Run(name, func(t *testing.T) {
			known, lacking := podOf("known"), podOf("lacking")
			summary := &statsapi.Summary{Node: statsapi.NodeStats{
				Memory: &statsapi.MemoryStats{AvailableBytes: new(uint64(1)), WorkingSetBytes: new(uint64(99))},
				Fs:     &statsapi.FsStats{AvailableBytes: new(uint64(1)), CapacityBytes: new(uint64(100)), InodesFree: new(uint64(1)), Inodes: new(uint64(100))},
				Rlimit: &statsapi.RlimitStats{MaxPID: new(int64(100)), NumOfRunningProcesses: new(int64(99))},
			}}
			add := func(pod *v1.Pod, s *statsapi.PodStats) {
				s.PodRef.UID = string(pod.UID)
				summary.Pods = append(summary.Pods, *s)
			}
			add(known, stats(func(*statsapi.PodStats) {}))
			if tc.lacks != nil {
				add(lacking, stats(tc.lacks))
			}
			thresholds, err := eviction.Settings{Hard: values{string(tc.signal): "50%"}}.Parse()
			require.NoError(t, err)
			in := eviction.Inputs{Now: noon, Pods: []*v1.Pod{lacking, known}, Summary: summary, Policy: eviction.Policy{Thresholds: thresholds}}
			in.Partial = true
			p := in.Plan()
			require.Len(t, p.Ranking, 2)
			assert.Equal(t, 1, p.Victims)
			for i, r := range p.Ranking {
				is := r.Pod == lacking && !tc.measured
				assert.Equal(t, is, r.Unmeasured)
				assert.Equal(t, is, r.Exempt == "usage could not be measured")
				assert.False(t, is && i == 0, "it is ranked last")
			}
			in.Partial = false
			for _, r := range in.Plan().Ranking {
				assert.Empty(t, r.Exempt)
				assert.Equal(t, r.Pod == lacking && tc.lacks == nil, r.NoStats)
			}
		})
	}
}

func TestLayoutsFollowFromDevicesOrFigures(t *testing.T) { // ev-11
	assert.Equal(t, eviction.SingleFS, eviction.LayoutByDevice("a", "a", "a"))
	assert.Equal(t, eviction.DedicatedImageFS, eviction.LayoutByDevice("a", "b", "b"))
	assert.Equal(t, eviction.SplitImageFS, eviction.LayoutByDevice("a", "b", "a"))
	fs := func(size, inodes uint64) *statsapi.FsStats {
		return &statsapi.FsStats{CapacityBytes: &size, Inodes: &inodes}
	}
	of := func(root, images, containers *statsapi.FsStats) eviction.Layout {
		return eviction.LayoutByStats(&statsapi.Summary{Node: statsapi.NodeStats{Fs: root, Runtime: &statsapi.RuntimeStats{ImageFs: images, ContainerFs: containers}}})
	}
	assert.Equal(t, eviction.SingleFS, of(fs(1, 1), fs(1, 1), fs(1, 1)))
	assert.Equal(t, eviction.SingleFS, of(fs(1, 1), nil, nil))
	assert.Equal(t, eviction.SingleFS, eviction.LayoutByStats(nil))
	assert.Equal(t, eviction.DedicatedImageFS, of(fs(1, 1), fs(1, 2), fs(1, 2)))
	assert.Equal(t, eviction.SplitImageFS, of(fs(1, 1), fs(2, 2), fs(1, 1)))
	assert.Equal(t, "one file system, dedicated image file system, split image file system, unknown",
		eviction.SingleFS.String()+", "+eviction.DedicatedImageFS.String()+", "+eviction.SplitImageFS.String()+", "+eviction.Layout(9).String())
}

func TestReclaimStepsBeforeEvictions(t *testing.T) { // section 2.4, ev-34
	c, i := eviction.DeleteUnusedContainers, eviction.DeleteUnusedImages
	for layout, want := range map[eviction.Layout]map[eviction.Signal][]string{
		eviction.SingleFS:         {"nodefs.available": {c, i}, "imagefs.inodesFree": {c, i}, "nodefs.inodesFree": {c, i}},
		eviction.DedicatedImageFS: {"nodefs.available": nil, "imagefs.available": {c, i}, "imagefs.inodesFree": {c, i}, "nodefs.inodesFree": nil},
		eviction.SplitImageFS:     {"nodefs.available": {c}, "imagefs.available": {i}, "memory.available": nil, "pid.available": nil},
	} {
		for signal, steps := range want {
			in := lowMemory(podOf("web"))
			low := &statsapi.FsStats{AvailableBytes: new(uint64(1)), CapacityBytes: new(uint64(100)), InodesFree: new(uint64(1)), Inodes: new(uint64(100))}
			in.Summary.Node.Fs, in.Summary.Node.Runtime = low, &statsapi.RuntimeStats{ImageFs: low, ContainerFs: low}
			in.Summary.Node.Rlimit = &statsapi.RlimitStats{MaxPID: new(int64(10)), NumOfRunningProcesses: new(int64(10))}
			in.RootDevice, in.ImageDevice, in.LayerDevice = layout.Devices()
			in.Policy.Thresholds = []eviction.Threshold{{Signal: signal, Value: eviction.Value{Percentage: 0.5}}}
			p := in.Plan()
			require.NotNil(t, p.Chosen, "%v %v", layout, signal)
			if p.Chosen.Threshold.Signal == signal {
				assert.Equal(t, steps, p.Steps, "%v %v", layout, signal)
			}
		}
	}
}

func TestLocalVolumesAreThoseOnTheNodesDisk(t *testing.T) { // ev-44
	pod := podOf("web")
	for name, source := range map[string]v1.VolumeSource{
		"cache":  {EmptyDir: &v1.EmptyDirVolumeSource{}},
		"memory": {EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}},
		"config": {ConfigMap: &v1.ConfigMapVolumeSource{}},
		"git":    {GitRepo: &v1.GitRepoVolumeSource{}},
		"host":   {HostPath: &v1.HostPathVolumeSource{}},
		"secret": {Secret: &v1.SecretVolumeSource{}},
		"claim":  {PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{}},
	} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
	}
	stats := statsapi.PodStats{PodRef: statsapi.PodReference{UID: string(pod.UID)}}
	for i, name := range []string{"cache", "memory", "config", "git", "secret", "claim", "foreign"} {
		stats.VolumeStats = append(stats.VolumeStats, statsapi.VolumeStats{Name: name, FsStats: statsapi.FsStats{UsedBytes: new(uint64(1) << i)}})
	}
	in := eviction.Inputs{
		Now: noon, Pods: []*v1.Pod{pod},
		Policy: eviction.Policy{Thresholds: []eviction.Threshold{{Signal: "nodefs.available", Value: eviction.Value{Percentage: 0.5}}}},
		Summary: &statsapi.Summary{
			Node: statsapi.NodeStats{Fs: &statsapi.FsStats{AvailableBytes: new(uint64(1)), CapacityBytes: new(uint64(100))}},
			Pods: []statsapi.PodStats{stats},
		},
	}
	assert.EqualValues(t, 1+4+8, in.Plan().Ranking[0].Usage)
}

func TestAdmissionUnderPressure(t *testing.T) { // ev-30 … ev-33
	besteffort, burstable := podOf("besteffort"), podOf("burstable")
	burstable.Spec.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse("1m")}
	tolerant := func(t v1.Toleration) *v1.Pod {
		pod := podOf("tolerant")
		pod.Spec.Tolerations = []v1.Toleration{t}
		return pod
	}
	static, mirror, system, almost := podOf("static"), podOf("mirror"), podOf("system"), podOf("almost")
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	mirror.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"}
	system.Spec.Priority, almost.Spec.Priority = new(int32(2_000_000_000)), new(int32(1_999_999_999))
	memory, disk, pid := v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure
	for name, tc := range map[string]struct {
		pod        *v1.Pod
		conditions []v1.NodeConditionType
		want       string
	}{
		"ev-30 none":                {besteffort, nil, ""},
		"ev-31 static":              {static, []v1.NodeConditionType{disk}, ""},
		"ev-31 mirror":              {mirror, []v1.NodeConditionType{disk}, ""},
		"ev-31 system":              {system, []v1.NodeConditionType{disk, memory, pid}, ""},
		"ev-31 not quite":           {almost, []v1.NodeConditionType{disk}, "The node had condition: [DiskPressure]. "},
		"ev-32 burstable":           {burstable, []v1.NodeConditionType{memory}, ""},
		"ev-32 best effort":         {besteffort, []v1.NodeConditionType{memory}, "The node had condition: [MemoryPressure]. "},
		"ev-32 tolerates":           {tolerant(v1.Toleration{Key: v1.TaintNodeMemoryPressure, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}), []v1.NodeConditionType{memory}, ""},
		"ev-32 tolerates all":       {tolerant(v1.Toleration{Operator: v1.TolerationOpExists}), []v1.NodeConditionType{memory}, ""},
		"ev-32 tolerates the key":   {tolerant(v1.Toleration{Key: v1.TaintNodeMemoryPressure}), []v1.NodeConditionType{memory}, ""},
		"ev-32 tolerates a value":   {tolerant(v1.Toleration{Key: v1.TaintNodeMemoryPressure, Value: "x"}), []v1.NodeConditionType{memory}, "The node had condition: [MemoryPressure]. "},
		"ev-32 another effect":      {tolerant(v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}), []v1.NodeConditionType{memory}, "The node had condition: [MemoryPressure]. "},
		"ev-32 an unknown operator": {tolerant(v1.Toleration{Operator: "Likes"}), []v1.NodeConditionType{memory}, "The node had condition: [MemoryPressure]. "},
		"ev-33 disk":                {burstable, []v1.NodeConditionType{pid, disk}, "The node had condition: [DiskPressure PIDPressure]. "},
		"ev-33 memory and more":     {burstable, []v1.NodeConditionType{memory, pid}, "The node had condition: [MemoryPressure PIDPressure]. "},
	} {
		t.Run(name, func(t *testing.T) {
			refused := eviction.Policy{}.Admit(tc.pod, tc.conditions)
			if tc.want == "" {
				assert.Nil(t, refused)
				return
			}
			require.NotNil(t, refused)
			assert.Equal(t, "Evicted", refused.Reason)
			assert.EqualError(t, refused, tc.want)
		})
	}
}

func TestLevelsOfNotifiersLeaveRoomForTheCache(t *testing.T) { // ev-58, ev-59
	thresholds, err := eviction.Settings{Hard: values{"memory.available": "100Mi"}, Soft: values{"memory.available": "50%"}, SoftGracePeriod: values{"memory.available": "1m"}, EnforcePods: true}.Parse()
	require.NoError(t, err)
	memory := func(available, set, usage string) *statsapi.MemoryStats {
		return &statsapi.MemoryStats{AvailableBytes: bytesOf(available), WorkingSetBytes: bytesOf(set), UsageBytes: bytesOf(usage)}
	}
	summary := &statsapi.Summary{Node: statsapi.NodeStats{
		Memory:           memory("600Mi", "400Mi", "550Mi"),
		SystemContainers: []statsapi.ContainerStats{{Name: "kubelet"}, {Name: "pods", Memory: memory("300Mi", "200Mi", "200Mi")}},
	}}
	assert.Equal(t, []int64{(1000 - 100 + 150) << 20, (500 + 150) << 20}, eviction.MemoryLevels(thresholds, "memory.available", summary, nil))
	assert.Equal(t, []int64{(500 - 100) << 20}, eviction.MemoryLevels(thresholds, "allocatableMemory.available", summary, nil))
	assert.Empty(t, eviction.MemoryLevels(thresholds, "nodefs.available", nil, nil))
	assert.Empty(t, eviction.MemoryLevels(thresholds, "memory.available", &statsapi.Summary{}, nil))
	assert.Equal(t, []int64{900 << 20, 500 << 20}, eviction.MemoryLevels(thresholds, "memory.available", nil, &eviction.Observation{Capacity: 1000 << 20}))
	summary.Node.Memory.UsageBytes = nil
	assert.Equal(t, []int64{900 << 20, 500 << 20}, eviction.MemoryLevels(thresholds, "memory.available", summary, nil))
}

func TestExemptAndSparedPodsHaveReasons(t *testing.T) { // ev-51
	pods := []*v1.Pod{podOf("a"), podOf("b"), podOf("c"), podOf("d")}
	in := lowMemory(pods...)
	in.KillBackoff = []types.UID{"b-uid"}
	in.Policy.Spare = sparing(map[types.UID]spare{"a-uid": {Reason: "a budget"}, "c-uid": {Reason: "required by its owner", Absolute: true}})
	p := in.Plan()
	assert.Equal(t, []string{"b", "d", "a", "c"}, order(p))
	assert.Equal(t, "kill failed recently", p.Ranking[0].Exempt)
	assert.Equal(t, "a budget", p.Ranking[2].Spared)
	assert.Empty(t, p.Ranking[2].Exempt, "it is evicted if no other pod is left")
	assert.Equal(t, "spared: required by its owner", p.Ranking[3].Exempt)
	assert.Equal(t, 1, p.Victims)
	assert.Equal(t, "memory.available was 104857600 of 1073741824, below 200Mi; default/d was place 2 of 4, before default/a by spared; "+
		"default/b was passed over: kill failed recently", p.Victim(1).Explanation.String())
}

func TestTheMemoryOfANodeMayBeThatOfACgroup(t *testing.T) {
	v1 := fstest.MapFS{"memory.limit_in_bytes": {Data: []byte("1000\n")}, "memory.usage_in_bytes": {Data: []byte("700\n")}, "memory.stat": {Data: []byte("inactive_file 1\ntotal_inactive_file 100\n")}}
	v2 := fstest.MapFS{"memory.max": {Data: []byte("1000\n")}, "memory.current": {Data: []byte("700\n")}, "memory.stat": {Data: []byte("anon 5\ninactive_file 100\n")}}
	for _, group := range []fstest.MapFS{v1, v2} {
		figure, err := eviction.CgroupMemory(group)(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 400, figure.Available)
		assert.EqualValues(t, 1000, figure.Capacity)
	}
	v2["memory.max"].Data = []byte("max\n")
	_, err := eviction.CgroupMemory(v2)(t.Context())
	assert.EqualError(t, err, `eviction: memory.max: "max" is not a number of bytes`)
	v1["memory.limit_in_bytes"].Data = []byte("9223372036854771712\n")
	_, err = eviction.CgroupMemory(v1)(t.Context())
	assert.EqualError(t, err, "eviction: memory.limit_in_bytes: no limit")
	_, err = eviction.CgroupMemory(fstest.MapFS{})(t.Context())
	assert.Error(t, err)
}

func TestTheOperatorDefinesCriticalPods(t *testing.T) { // ev-31, ev-51
	static := podOf("static")
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	in := lowMemory(static)
	require.Equal(t, "critical pod", in.Plan().Ranking[0].Exempt)
	in.Policy.Critical = func(*v1.Pod) bool { return false }
	assert.Empty(t, in.Plan().Ranking[0].Exempt)
	assert.Nil(t, eviction.Policy{}.Admit(static, []v1.NodeConditionType{v1.NodeDiskPressure}))
	assert.NotNil(t, in.Policy.Admit(static, []v1.NodeConditionType{v1.NodeDiskPressure}))
}

// A spare is the result of Policy.Spare.
type spare struct {
	Reason   string
	Absolute bool
}

func sparing(spares map[types.UID]spare) func(*v1.Pod) (string, bool) {
	return func(pod *v1.Pod) (string, bool) { return spares[pod.UID].Reason, spares[pod.UID].Absolute }
}
