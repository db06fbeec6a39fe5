package cri_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// containerd accepts the configs of pods that use every optional feature of this
// machine: a group without a user, which the CRI does not accept unchanged (rt-83,
// se-11), limits on huge pages and swap as this machine supports them, and memory
// protection.
func TestIntegrationConfigsWithAllFactsAreTaken(t *testing.T) {
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	facts, err := cri.ReadFacts(os.DirFS("/"))
	require.NoError(t, err)
	facts.Security.SeccompDefault = true
	facts.Swap.Limited = true
	facts.MemoryQoS = podconfig.MemoryQoS{Enabled: true, Reserve: cgroups.ReserveTiered, ThrottlingFactor: 0.9}
	dir := t.TempDir()
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Node: cri.Node{Facts: facts},
		Dirs:      cri.Dirs{Root: dir + "/root", PodLogs: dir + "/pods"},
		Providers: cri.Providers{Volumes: volumeGroups{5555}},
	})
	require.NoError(t, err)
	c := script("a", `(id -u; id -g; id -G; grep Seccomp: /proc/self/status; cat /proc/self/oom_score_adj) > /dev/termination-log`)
	c.Resources = v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("32Mi")}, Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("64Mi")}}
	pod := podOf(c)
	pod.UID = types.UID(fmt.Sprintf("it-%d", time.Now().UnixNano()))
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsGroup: new(int64(7)), FSGroup: new(int64(2000))}
	st := drive(t, rt, pod, nil, func(st *runtime.PodStatus) bool {
		a := st.Container("a")
		return a != nil && a.State == runtime.ContainerExited
	})
	a := st.Container("a")
	assert.Zero(t, a.ExitCode, a.Message)
	assert.Regexp(t, `^0\n7\n(.* )?2000 5555\nSeccomp:\t2\n99\d\n$`, a.Message)
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
}

// Root in a pod with a user namespace has no privileges outside, or the pod is
// rejected, depending on whether containerd supports user namespaces (se-17).
func TestIntegrationUserNamespaces(t *testing.T) {
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	dir := t.TempDir()
	ids, err := userns.New(userns.Config{RootDir: dir + "/root"})
	require.NoError(t, err)
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Providers: cri.Providers{UserNamespaces: ids},
		Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/pods"},
	})
	require.NoError(t, err)
	c := script("a", `cat /proc/self/uid_map`)
	c.TerminationMessagePath, c.TerminationMessagePolicy = "", v1.TerminationMessageFallbackToLogsOnError
	c.Command[len(c.Command)-1] += "; exit 1" // so that its output is its message
	pod := podOf(c)
	pod.UID = types.UID(fmt.Sprintf("it-%d", time.Now().UnixNano()))
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	pod.Spec.HostUsers = new(false)
	answer, err := client.Runtime.Status(t.Context(), false)
	require.NoError(t, err)
	supported := false
	for _, h := range answer.GetRuntimeHandlers() {
		supported = supported || h.GetName() == "" && h.GetFeatures().GetUserNamespaces()
	}
	t.Log("user namespaces:", supported)
	if !supported {
		res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		assert.Equal(t, "can't set `spec.hostUsers: false`, runtime does not support user namespaces", res.Actions[0].Message)
		return
	}
	st := drive(t, rt, pod, nil, func(st *runtime.PodStatus) bool {
		a := st.Container("a")
		return a != nil && a.State == runtime.ContainerExited
	})
	assert.Regexp(t, `^\s*0\s+65536\s+65536\n$`, st.Container("a").Message)
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
}
