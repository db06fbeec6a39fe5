package kubelet_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// elsewhere is a NodeReporter.
type elsewhere struct {
	info kubelet.NodeInfo
	err  error
}

func (e elsewhere) NodeInfo(context.Context) (kubelet.NodeInfo, error) { return e.info, e.err }

func amounts(cpu, memory string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
}

// onBackend returns the Config of a node over a backend, which is in the cluster of api. Its API is open.
func onBackend(t *testing.T, api *apitest.Server, backend containers.Backend) kubelet.Config {
	t.Helper()
	conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
	require.NoError(t, err)
	k := &kubeletconfig.KubeletConfiguration{
		Address: "127.0.0.1", Port: -1, HealthzPort: new(int32(-1)),
		EvictionHard: map[string]string{}, // the disk of the machine may be full
	}
	k.Authentication.Anonymous.Enabled, k.Authentication.Webhook.Enabled = new(true), new(false)
	k.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
	return kubelet.Config{
		Configuration: k, NodeName: "vms", RootDir: filepath.Join(t.TempDir(), "vms"), Cluster: kubelet.Cluster{Client: conn},
		Runtime: kubelet.Runtime{
			Name: "machines", Node: elsewhere{info: kubelet.NodeInfo{Capacity: amounts("16", "64Gi"), Version: "3.1", OS: "linux", Arch: "arm64"}},
			New: func(engine cri.Config) (runtime.Runtime, error) {
				return containers.New(containers.Config{Backend: backend, Node: "vms", Engine: engine})
			},
		},
		Adjust: []compose.Adjustment{compose.Adjust(func(c *stats.Config) { c.MaxAge = 100 * time.Millisecond })},
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// get returns the code and the body of a response of the kubelet's API.
func get(t *testing.T, k *kubelet.Kubelet, path string) (int, string) {
	t.Helper()
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := insecure.Get("https://" + k.APIAddr().String() + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestANodeOverABackend(t *testing.T) {
	api, backend := new(apitest.Server), new(containerstest.Backend)
	backend.Behave("web:1", fake.Behavior{Exec: func(_ context.Context, cmd []string, s runtime.Streams) (int32, error) {
		_, err := fmt.Fprintf(s.Stdout, "%s on the machine", strings.Join(cmd, " "))
		return 0, err
	}})
	m := &member{cfg: onBackend(t, api, backend)}
	m.start(t)
	defer func() { m.stop(); require.NoError(t, <-m.stopped) }()
	require.Eventually(t, func() bool { return nodeReady(api, "vms") }, 90*time.Second, 10*time.Millisecond)

	n := api.Get("nodes", "", "vms").(*v1.Node)
	assert.Equal(t, []v1.Taint{{Key: "kubeparts.io/runtime", Value: "machines", Effect: v1.TaintEffectNoSchedule}}, n.Spec.Taints)
	assert.Equal(t, "machines", n.Labels["kubeparts.io/runtime"])
	assert.Equal(t, "arm64", n.Labels[v1.LabelArchStable])
	assert.Equal(t, "machines://3.1", n.Status.NodeInfo.ContainerRuntimeVersion)
	assert.Equal(t, "16", n.Status.Capacity.Cpu().String())
	assert.Equal(t, "64Gi", n.Status.Allocatable.Memory().String())
	assert.EqualValues(t, 110, n.Status.Allocatable.Pods().Value())
	assert.NotZero(t, n.Status.DaemonEndpoints.KubeletEndpoint.Port)
	assert.NotContains(t, fmt.Sprint(n.Status.Conditions), "WARNING")

	api.Put(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"color": "blue"}})
	web := bound("web", "vms")
	web.Spec.Containers[0].Image = "web:1"
	web.Spec.Containers[0].Env = []v1.EnvVar{{Name: "COLOR", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{
		LocalObjectReference: v1.LocalObjectReference{Name: "settings"}, Key: "color",
	}}}}
	// The place of the default token, which is not mounted.
	web.Spec.Volumes = []v1.Volume{{Name: "kube-api-access", VolumeSource: v1.VolumeSource{EmptyDir: new(v1.EmptyDirVolumeSource)}}}
	web.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
	api.Put(web)
	disk := bound("disk", "vms")
	disk.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: new(v1.EmptyDirVolumeSource)}}}
	disk.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	api.Put(disk)
	large := bound("large", "vms")
	large.Spec.Containers[0].Resources.Requests = amounts("17", "1Gi")
	api.Put(large)

	phase := func(name string, phase v1.PodPhase) *v1.Pod {
		t.Helper()
		require.Eventually(t, func() bool { return api.Pod("default", name).Status.Phase == phase }, 90*time.Second, 10*time.Millisecond, name)
		return api.Pod("default", name)
	}
	phase("web", v1.PodRunning)
	require.Len(t, backend.Instances(), 1)
	assert.Contains(t, backend.Instances()[0].Env, containers.EnvVar{Name: "COLOR", Value: "blue"})
	rejected := phase("disk", v1.PodFailed).Status
	assert.Equal(t, "UnsupportedByBackend", rejected.Reason)
	assert.Contains(t, rejected.Message, `volume "data" in container "main"`)
	assert.Equal(t, "OutOfcpu", phase("large", v1.PodFailed).Status.Reason)

	var summary statsapi.Summary
	require.Eventually(t, func() bool { // the pod's usage is measured periodically
		code, text := get(t, m.kubelet, "/stats/summary")
		summary = statsapi.Summary{}
		return code == http.StatusOK && json.Unmarshal([]byte(text), &summary) == nil && len(summary.Pods) == 1
	}, 90*time.Second, 50*time.Millisecond)
	assert.Equal(t, summary.Pods[0].CPU.UsageCoreNanoSeconds, summary.Node.CPU.UsageCoreNanoSeconds, "the node is the sum of its pods")
	assert.Equal(t, *summary.Pods[0].Memory.WorkingSetBytes, *summary.Node.Memory.WorkingSetBytes)
	code, text := get(t, m.kubelet, "/metrics/resource")
	require.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, "node_memory_working_set_bytes ")
	assert.Contains(t, text, `container_cpu_usage_seconds_total{container="main",namespace="default",pod="web"}`)

	// A command, without a stream: POST /run.
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := insecure.Post("https://"+m.kubelet.APIAddr().String()+"/run/default/web/main?cmd=uptime", "", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "uptime on the machine", string(out))
}

// A plain runtime hides the optional interfaces.
type plain struct{ runtime.Runtime }

func (plain) Unwrap() any { return nil }

// A runtime with none of the optional interfaces: what requires them is refused.
func TestANodeOverAPlainRuntime(t *testing.T) {
	api := new(apitest.Server)
	cfg := onBackend(t, api, nil)
	cfg.Configuration.RegisterWithTaints = []v1.Taint{} // any pod may land here
	cfg.Runtime = kubelet.Runtime{Name: "plain", New: func(cri.Config) (runtime.Runtime, error) {
		return plain{new(runtimetest.Runtime)}, nil
	}}
	m := &member{cfg: cfg}
	m.start(t)
	defer func() { m.stop(); require.NoError(t, <-m.stopped) }()
	require.Eventually(t, func() bool { return nodeReady(api, "vms") }, 90*time.Second, 10*time.Millisecond)
	n := api.Get("nodes", "", "vms").(*v1.Node)
	assert.Empty(t, n.Spec.Taints)
	assert.Equal(t, "plain://Unknown", n.Status.NodeInfo.ContainerRuntimeVersion)
	assert.NotZero(t, n.Status.Capacity.Cpu().Value(), "of this machine")
	api.Put(bound("web", "vms"))
	require.Eventually(t, func() bool { return api.Pod("default", "web").Status.Phase == v1.PodRunning }, 90*time.Second, 10*time.Millisecond)

	for path, refused := range map[string]string{
		"/containerLogs/default/web/main":           "container logs are not supported by this node",
		"/exec/default/web/main?command=x&output=1": "exec is not supported by the runtime of this node",
		"/attach/default/web/main?output=1":         "attach is not supported by the runtime of this node",
		"/portForward/default/web?port=80":          "port forwarding is not supported by the runtime of this node",
	} {
		code, text := upgrade(t, m.kubelet, path)
		assert.Equal(t, http.StatusNotFound, code, path)
		assert.Equal(t, refused, strings.TrimSpace(text), path)
	}
	code, text := get(t, m.kubelet, "/stats/summary")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, `"pods":[]`)
	code, _ = get(t, m.kubelet, "/metrics/resource")
	assert.Equal(t, http.StatusOK, code)
}

// upgrade is get with the headers of a request for a WebSocket.
func upgrade(t *testing.T, k *kubelet.Kubelet, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+k.APIAddr().String()+path, nil)
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
	} {
		req.Header.Set(name, value)
	}
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := insecure.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestMisuseOfAGivenRuntimeIsAnError(t *testing.T) {
	fake, err := fakecri.New(fakecri.Config{})
	require.NoError(t, err)
	failed := errors.New("failed")
	for want, change := range map[string]func(*kubelet.Config){
		"Config.Runtime.New excludes Service, Images, Processes and PauseImage": func(c *kubelet.Config) { c.Runtime.Service, c.Runtime.Images = fake, fake },
		"Config.Runtime has no Name":                              func(c *kubelet.Config) { c.Runtime.Name = "" },
		`Config.Runtime.Name "a b" is not the value of a label: `: func(c *kubelet.Config) { c.Runtime.Name = "a b" },
		"Config.Runtime.Node requires Config.Runtime.New":         func(c *kubelet.Config) { c.Runtime.New = nil },
		"Config.Runtime.New: failed": func(c *kubelet.Config) {
			c.Runtime.New = func(cri.Config) (runtime.Runtime, error) { return nil, failed }
		},
		"Config.Runtime.New: struct { runtime.Runtime } hides Exec (runtime.Execer) of *runtimetest.Runtime; add Unwrap": func(c *kubelet.Config) {
			c.Runtime.New = func(cri.Config) (runtime.Runtime, error) {
				return struct{ runtime.Runtime }{new(runtimetest.Runtime)}, nil
			}
		},
		"Config.Runtime.New returned nil": func(c *kubelet.Config) {
			c.Runtime.New = func(cri.Config) (runtime.Runtime, error) { return nil, nil }
		},
		"Config.Runtime.Node: description of the node: failed":                               func(c *kubelet.Config) { c.Runtime.Node = elsewhere{err: failed} },
		"Config.Runtime.Node: description of the node: the capacity has no cpu or no memory": func(c *kubelet.Config) { c.Runtime.Node = elsewhere{} },
		"cpuManagerPolicy, memoryManagerPolicy: pods of Config.Runtime.New cannot have exclusive CPUs or memory": func(c *kubelet.Config) {
			c.Configuration.CPUManagerPolicy, c.Configuration.KubeReserved = "static", map[string]string{"cpu": "1"}
		},
		"evictionHard: memory.available: pods do not run on this machine (Config.Runtime.Node)": func(c *kubelet.Config) {
			c.Configuration.EvictionHard = map[string]string{"memory.available": "1Gi", "nodefs.available": "1%"}
		},
	} {
		cfg := onBackend(t, new(apitest.Server), new(containerstest.Backend))
		change(&cfg)
		k, err := kubelet.Open(t.Context(), cfg)
		assert.ErrorContains(t, err, want)
		if err == nil {
			require.NoError(t, k.Close())
		}
	}
}
