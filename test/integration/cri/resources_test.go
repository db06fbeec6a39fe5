package cri_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/runtime"
)

// limits prints a container's memory limit in bytes and its share of CPU time
// in microseconds per period, on either version of cgroups.
const limits = `if [ -e /sys/fs/cgroup/memory.max ]; then cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max
else cat /sys/fs/cgroup/memory/memory.limit_in_bytes; echo $(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us); fi`

func resources(cpu, memory string) v1.ResourceList {
	list := v1.ResourceList{}
	if cpu != "" {
		list[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

// resourcesOnContainerd checks the cgroup settings for requests and limits (section
// 8.5), and host ports.
func resourcesOnContainerd(t *testing.T, s *sharedEngine) {
	t.Run("limits cm-32", func(t *testing.T) {
		t.Parallel()
		web := script("web", limits)
		web.Resources = v1.ResourceRequirements{Limits: resources("500m", "64Mi"), Requests: resources("250m", "32Mi")}
		shares := script("shares", "cat /sys/fs/cgroup/cpu/cpu.shares 2>/dev/null || echo none")
		shares.Resources = web.Resources
		a := s.enginePod(t, web, shares)
		a.ends()
		assert.Equal(t, "67108864\n50000 100000\n", a.log("web", 0))
		if got := a.log("shares", 0); got != "none\n" { // cgroup v2 has weights, which the runtime works out
			assert.Equal(t, "256\n", got)
		}
	})

	t.Run("a container over its memory limit is killed", func(t *testing.T) {
		t.Parallel()
		web := script("web", "x=0123456789abcdef; while true; do x=$x$x; done")
		web.Resources = v1.ResourceRequirements{Limits: resources("", "16Mi")}
		a := s.enginePod(t, web)
		st := a.ends()
		assert.EqualValues(t, 137, st.Container("web").ExitCode)
		assert.Equal(t, "OOMKilled", st.Container("web").Reason)
	})

	// The lab's containerd does not lower the OOM score of a container below its own
	// (restrict_oom_score_adj); the first case allows for that.
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	require.NoError(t, err)
	floor, err := strconv.Atoi(strings.TrimSpace(string(own)))
	require.NoError(t, err)
	for _, tc := range []struct {
		name      string
		resources v1.ResourceRequirements
		want      int
	}{
		{"guaranteed", v1.ResourceRequirements{Limits: resources("100m", "64Mi"), Requests: resources("100m", "64Mi")}, -997},
		{"burstable", v1.ResourceRequirements{Requests: resources("", "512Mi")}, 500}, // half of the node's
		{"best effort", v1.ResourceRequirements{}, 1000},
	} {
		t.Run("oom_score_adj of "+tc.name+" cm-35", func(t *testing.T) {
			t.Parallel()
			web := script("web", "cat /proc/self/oom_score_adj")
			web.Resources = tc.resources
			a := s.enginePod(t, web)
			a.ends()
			assert.Equal(t, strconv.Itoa(max(tc.want, floor))+"\n", a.log("web", 0))
		})
	}

	t.Run("a hostPort rt-19", func(t *testing.T) {
		t.Parallel()
		web := script("web", "mkdir /www; echo hello > /www/index.html; exec httpd -f -p 8080 -h /www")
		web.Ports = []v1.ContainerPort{{ContainerPort: 8080, HostPort: 18080, Protocol: v1.ProtocolTCP}}
		a := s.enginePod(t, web)
		st := a.runs()
		require.Len(t, st.IPs, 1)
		gateway := st.IPs[0][:strings.LastIndex(st.IPs[0], ".")] + ".1" // the port is free on that address
		web.Ports[0].HostIP = gateway
		url := "http://" + net.JoinHostPort(gateway, "18080") + "/"
		client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			answer, err := client.Get(url)
			require.NoError(c, err)
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			require.NoError(c, err)
			require.Equal(c, "hello\n", string(body))
		}, 90*time.Second, 50*time.Millisecond)
		a.kill()
		_, err := client.Get(url)
		require.Error(t, err, "the port is released with the pod")
	})

	t.Run("a resize of a container that runs", func(t *testing.T) {
		t.Parallel()
		web := script("web", serves)
		web.Resources = v1.ResourceRequirements{Limits: resources("200m", "32Mi"), Requests: resources("100m", "16Mi")}
		a := s.enginePod(t, web)
		before := a.runs().Container("web")
		require.Equal(t, "33554432\n20000 100000\n", a.exec(before, limits))
		a.pod = a.pod.DeepCopy()
		a.pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Limits: resources("400m", "64Mi"), Requests: resources("200m", "32Mi")}
		res, err := a.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: a.pod})
		require.NoError(t, err)
		require.Len(t, res.Actions, 1)
		assert.Equal(t, runtime.ResizePodInPlace, res.Actions[0].Kind)
		after := a.runs().Container("web")
		assert.Equal(t, before.ID, after.ID)
		assert.Equal(t, "67108864\n40000 100000\n", a.exec(after, limits))
		require.NotNil(t, after.Resources)
		assert.Equal(t, "64Mi", after.Resources.Limits.Memory().String())
		assert.Equal(t, "400m", after.Resources.Limits.Cpu().String())
		a.sync(nil)
		assert.Equal(t, before.ID, a.status().Container("web").ID, "the container is not replaced")
		require.Empty(t, a.failures)
	})
}
