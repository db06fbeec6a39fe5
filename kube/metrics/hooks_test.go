package metrics_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/agent/podsapi"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/dra/registry"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/oom"
	"github.com/kubeparts/kubeparts/cm/podresources"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
)

// live calls every hook, so that every series has a sample.
func (w world) live(t testing.TB) world {
	t.Helper()
	pod, second := web(), time.Second
	g := w.PLEG()
	g.Relisted(pleg.RelistInfo{Start: at, Duration: second, Interval: second, Unannounced: 1, Stale: 1, Confidence: "trusted"})
	g.Relisted(pleg.RelistInfo{Err: errBroken})
	g.Inspected(pleg.InspectInfo{Duration: second})
	w.PodWorker().Synced(podworker.SyncInfo{Pod: pod, State: podworker.Syncing, First: true, Duration: second})
	w.PodWorker().Synced(podworker.SyncInfo{Pod: pod, State: podworker.Terminating, Err: errBroken})
	w.PodWorker().Preempted(nil, "", "OutOfcpu")
	w.PodWorker().Orphan(nil)
	w.PodWorker().Restarted(pod)
	w.Pipeline().Rejected(pod, runtime.Rejection{Reason: "OutOfcpu"})
	w.Pipeline().Stepped(pipeline.StepInfo{Step: "volumes", End: at, Begin: at})
	w.liveStatus(pod)
	for _, r := range []prober.AttemptInfo{{Result: runtime.ProbeSuccess}, {Result: runtime.ProbeFailure}, {Err: errBroken}} {
		r.Pod, r.Container, r.Kind, r.Duration = pod, "nginx", prober.Liveness, second
		w.Prober().Ran(r)
	}
	w.Prober().Deferred(nil, "", prober.Startup)
	e := w.Eviction()
	victims := []eviction.Victim{{Signal: "memory.available"}}
	met := eviction.MetThreshold{Threshold: eviction.Threshold{Signal: eviction.MemoryAvailable}, Observation: eviction.Observation{At: at}}
	e.Planned(&eviction.Plan{Invalid: []eviction.Observation{{Signal: eviction.MemoryAvailable}}})
	e.Passed(eviction.Result{
		Duration: second, Evicted: victims, Failed: victims, RankedAt: at.Add(second), Plan: &eviction.Plan{Met: []eviction.MetThreshold{met}},
	}, nil)
	w.ImageGC().Removed(imagegc.RemovedInfo{Reason: "space", Freed: 5, Measured: true})
	w.ImageGC().Passed(imagegc.PassInfo{Err: errBroken})
	w.liveVolumes(pod)
	w.Cgroups().Operation(cm.OperationInfo{Type: "create", Duration: second})
	w.Cgroups().Repaired(nil, nil)
	w.OOMKill(oom.Kill{Cgroup: "/kubepods", Count: 2})
	w.OOMKill(oom.Kill{Cgroup: "/"})
	w.CPU().Pinned(cpu.PinInfo{Error: errBroken})
	w.CPU().Pinned(cpu.PinInfo{Assignment: topology.PodShared}) // no request of exclusive CPUs
	w.CPUAssignments().Pinned(cpu.PinInfo{Assignment: topology.NodeExclusive, Error: errBroken})
	w.CPUAssignments().Pinned(cpu.PinInfo{Assignment: topology.PodShared})
	w.MemoryAssignments().Pinned(memory.PinInfo{Assignment: topology.NodeExclusive})
	w.CPU().Pool(cpu.PoolInfo{})
	w.Memory().Pinned(memory.PinInfo{})
	w.Memory().Pinned(memory.PinInfo{Assignment: topology.PodShared})
	w.Topology().Admitted(topology.AdmitInfo{Took: second})
	w.Allocation().Decided(allocation.DecisionInfo{After: v1.PodReasonInfeasible, Message: "…enough capacity…"})
	w.Allocation().Decided(allocation.DecisionInfo{Before: v1.PodReasonDeferred, Trigger: "pods_removed"})
	for _, resolution := range []string{"accepted", "reverted", "terminated"} {
		w.Allocation().Undeferred(allocation.UndeferredInfo{Pod: pod, Resolution: resolution, Duration: second})
	}
	w.Allocation().Undeferred(allocation.UndeferredInfo{Pod: pod, Resolution: "accepted"}) // of unknown duration
	w.Allocation().Resized(allocation.ResizedInfo{Duration: second})
	w.Sources().Set(podsource.SetInfo{Source: "file", Pods: 2, Rejected: 1})
	w.Sources().Failed("file", nil, 0)
	_ = w.Check("healthz", "pleg", func() error { return nil })()
	_ = w.Check("healthz", "runtime", func() error { return errBroken })()
	w.Shutdown().Times(at, time.Time{})
	w.Shutdown().Killed(shutdown.KilledInfo{Err: errBroken})
	w.liveRemote(pod)
	w.liveCluster(t)
	return w
}

func (w world) liveStatus(pod *v1.Pod) {
	s := w.Status()
	s.Changed(status.ChangedInfo{Pod: pod, New: v1.PodStatus{Phase: v1.PodPending}})
	s.Changed(status.ChangedInfo{Pod: pod, Old: v1.PodStatus{Phase: v1.PodPending}, New: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{
		{State: v1.ContainerState{Running: new(v1.ContainerStateRunning)}},
	}}})
	s.Terminated(status.TerminatedInfo{Pod: pod, Type: "container", Exit: &v1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}})
	s.IllegalRestart(nil, nil)
	s.Delivered(status.DeliveredInfo{Pod: pod, Latency: time.Second})
	s.Delivered(status.DeliveredInfo{Pod: pod, Err: errBroken})
	s.Delivered(status.DeliveredInfo{Pod: pod, Deleted: true})
}

func (w world) liveVolumes(pod *v1.Pod) {
	v := w.Volumes()
	v.Operated(volume.OperationInfo{Operation: "volume_mount", Plugin: "kubernetes.io/secret", Duration: time.Second, Total: time.Second})
	v.Operated(volume.OperationInfo{Operation: "volume_unmount", Plugin: "kubernetes.io/csi", Forced: true, Err: errBroken})
	v.Reconstructed(volume.Place{}, false, errBroken)
	v.Collected(3, 1)
}

func (w world) liveRemote(pod *v1.Pod) {
	r := w.remote.Runtime()
	r.Called(cri.CallInfo{Operation: "list_containers", Duration: time.Second, Err: errBroken})
	r.Acted(cri.ActInfo{Pod: pod, Action: runtime.Action{Kind: runtime.CreatePodSandbox, Err: errBroken}, Duration: time.Second, Handler: "gvisor"})
	for _, a := range []runtime.Action{{Target: "nginx"}, {Target: "init", Err: errBroken, Reason: "ErrImagePull"}, {Target: "debug"}, {Target: "nginx", Err: errBroken, Reason: "CrashLoopBackOff"}} {
		a.Kind = runtime.StartContainer
		r.Acted(cri.ActInfo{Pod: pod, Action: a})
	}
	r.Hooked(cri.HookInfo{Pod: pod, Container: "nginx", Kind: "PreStop", Err: context.Canceled, Insecure: true})
	i := w.remote.Images()
	i.Pulled(images.PullInfo{Pod: pod, Took: time.Second, Size: 50_000_000})
	i.Pulled(images.PullInfo{Pod: pod, Err: errBroken})
	i.Ensured(images.EnsureInfo{Present: true})
	w.remote.Credentials().PluginRan(credentials.PluginRunInfo{Plugin: "ecr", Duration: time.Second, Err: errBroken})
	w.remote.Devices().Registered("vendor/gpu")
	w.remote.Devices().Allocated(device.AllocateInfo{Resource: "vendor/gpu", Took: time.Second})
	w.remote.Claims().Operated(dra.OperationInfo{Type: "PrepareResources", Duration: time.Second, Err: errBroken})
	w.remote.Claims().Skipped(dra.SkipInfo{Driver: "gpu.example.com", Method: "NodePrepareResources"})
	w.remote.Claims().Skipped(dra.SkipInfo{Driver: "gpu.example.com", Method: "NodeUnprepareResources"})
	w.remote.DRA(registry.CallInfo{Driver: "gpu.example.com", Method: "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources", Code: "OK", Duration: time.Second})
	w.remote.CSI(csi.CallInfo{Driver: "d", Method: "/csi.v1.Node/NodePublishVolume", Code: "OK", Duration: time.Second})
	w.remote.PodResources(podresources.CallInfo{Method: "/v1.PodResourcesLister/List", Err: errBroken})
	w.remote.PodResources(podresources.CallInfo{Method: "/v1alpha1.PodResourcesLister/List"})
	w.remote.PodResources(podresources.CallInfo{Method: "/else"})
	for _, method := range []string{"ListPods", "GetPod", "WatchPods", "Else"} {
		w.remote.PodsAPI(podsapi.CallInfo{Method: "/v1alpha1.Pods/" + method})
	}
}

func (w world) liveCluster(t testing.TB) {
	n := w.cluster.Node()
	n.Registered(time.Second, true)
	n.Ready(3 * time.Second)
	n.Updated(true, nil)
	n.Updated(false, nil)
	n.Updated(false, errBroken)
	n.Renewed(errBroken)
	for _, of := range []func(bool, time.Duration, error){w.cluster.Tokens().Reviewed, w.cluster.Access().Reviewed} {
		of(true, 0, nil)
		of(false, time.Second, nil)
		of(false, time.Second, errBroken)
	}
	w.cluster.ClientRenewed(errBroken)
	w.cluster.ServerRenewed(errBroken)
	w.cluster.Pods().Failed(errBroken)
	w.cluster.Events().Dropped(runtime.Event{}, nil)
	w.cluster.Events().Wrote(runtime.Event{})
	s := w.cluster.Server()
	of := server.RequestInfo{Method: http.MethodGet, Path: "pods", ServerType: "readwrite", Code: 200, Seconds: 1}
	s.Started(of)
	s.Request(of)
	client := http.Client{Transport: w.cluster.Client(answers{})}
	answer, err := client.Post("http://api:6443/x", "text/plain", body("hello"))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	_, err = client.Get("http://api:6443/broken")
	require.Error(t, err)
}
