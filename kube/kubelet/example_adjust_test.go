package kubelet_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// A sandboxLog is a CRI runtime that prints the sandboxes that it creates.
type sandboxLog struct{ internalapi.RuntimeService }

func (r sandboxLog) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	fmt.Println("create a sandbox for", config.Metadata.Name)
	return r.RuntimeService.RunPodSandbox(ctx, config, handler)
}

// Any implementation of the CRI's Go interfaces can be the runtime, here one that wraps
// another.
func ExampleRuntime() {
	cfg, remove := exampleConfig(podManifest("web"))
	defer remove()
	sink, running := whenRunning(1)
	cfg.Sink = sink
	cfg.Runtime.Service = sandboxLog{cfg.Runtime.Service}

	k, err := kubelet.Open(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(runUntil(k, running))
	// Output:
	// create a sandbox for web-edge-1
	// <nil>
}

// A function in Config.Adjust changes the order of eviction: pods with the label evict=first precede
// all others.
func ExampleAdjust_eviction() {
	cfg, remove := exampleConfig(podManifest("api"), `
apiVersion: v1
kind: Pod
metadata: {name: cache, labels: {evict: first}}
spec:
  containers:
  - {name: main, image: redis}
`)
	defer remove()
	cfg.Configuration.EvictionHard = map[string]string{"memory.available": "100Mi"}
	started, running := whenRunning(2)
	evicted := make(chan struct{})
	var once sync.Once
	cfg.Sink = statusFunc(func(pod *v1.Pod, status v1.PodStatus) {
		started(pod, status)
		if status.Reason == "Evicted" {
			once.Do(func() {
				fmt.Println("evicted:", pod.Name)
				close(evicted)
			})
		}
	})
	var low atomic.Bool
	cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *eviction.Config) {
		c.Policy.Rank = func(_ eviction.Signal, a, b *eviction.Candidate) (int, string) {
			last := func(c *eviction.Candidate) int {
				if c.Pod.Labels["evict"] == "first" {
					return 0
				}
				return 1
			}
			return cmp.Compare(last(a), last(b)), "label"
		}
		// For the example, memory runs low until a pass measures the pods.
		c.Period = 10 * time.Millisecond
		c.Summary = func(_ context.Context, pods bool) (*statsapi.Summary, error) {
			available, used := uint64(1<<30), uint64(1<<30)
			if low.Load() {
				available = 50 << 20
				low.Store(!pods)
			}
			return &statsapi.Summary{Node: statsapi.NodeStats{Memory: &statsapi.MemoryStats{AvailableBytes: &available, WorkingSetBytes: &used}}}, nil
		}
	}))

	k, err := kubelet.Open(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		<-running
		low.Store(true)
	}()
	fmt.Println(runUntil(k, evicted))
	// Output:
	// evicted: cache-edge-1
	// <nil>
}

// An iscsiPlugin provides volumes of type iscsi. It mounts nothing here: the volume is an
// empty directory.
type iscsiPlugin struct{}

func (iscsiPlugin) Name() string { return "kubernetes.io/iscsi" }

func (iscsiPlugin) CanSupport(s *volume.Spec) bool { return s.Volume != nil && s.Volume.ISCSI != nil }

func (iscsiPlugin) SetUp(_ context.Context, r volume.Request) (volume.SetUpResult, error) {
	disk := r.Spec.Volume.ISCSI
	fmt.Printf("mount %s of %s as volume %s\n", disk.IQN, disk.TargetPortal, r.Spec.Name())
	return volume.SetUpResult{Volume: runtime.Volume{Path: r.Dir()}}, os.MkdirAll(r.Dir(), 0o750)
}

func (iscsiPlugin) TearDown(_ context.Context, at volume.Place) error { return os.RemoveAll(at.Dir()) }

func (iscsiPlugin) ConstructSpec(at volume.Place) (*volume.Spec, error) {
	return &volume.Spec{Volume: &v1.Volume{Name: at.Name, VolumeSource: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{}}}}, nil
}

func (iscsiPlugin) Stats(ctx context.Context, at volume.Place, _ runtime.Volume) (statsapi.FsStats, error) {
	usage, err := volume.DiskUsage(ctx, at.Dir())
	return usage, err
}

// A function in Config.Adjust adds a plugin for a type of volume.
func ExampleAdjust_volumes() {
	cfg, remove := exampleConfig(`
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    image: nginx
    volumeMounts: [{name: pages, mountPath: /pages}]
  volumes:
  - name: pages
    iscsi: {targetPortal: "192.0.2.1:3260", iqn: "iqn.2026-11.example:pages", lun: 0}
`)
	defer remove()
	sink, running := whenRunning(1)
	cfg.Sink = sink
	cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *volume.Config) {
		c.Plugins = append(c.Plugins, iscsiPlugin{})
	}))

	k, err := kubelet.Open(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(runUntil(k, running))
	// Output:
	// mount iqn.2026-11.example:pages of 192.0.2.1:3260 as volume pages
	// <nil>
}

// A tagPolicy admits pods whose images have a tag.
type tagPolicy struct{}

func (tagPolicy) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	for _, c := range pod.Spec.Containers {
		if !strings.Contains(c.Image, ":") {
			return &runtime.Rejection{Reason: "NoImageTag", Message: "container " + c.Name + " has an image without a tag: " + c.Image}
		}
	}
	return nil
}

// A function in Config.Adjust adds an admission check.
func ExampleAdjust_admission() {
	cfg, remove := exampleConfig(podManifest("web"))
	defer remove()
	rejected := make(chan struct{})
	var once sync.Once
	cfg.Sink = statusFunc(func(pod *v1.Pod, status v1.PodStatus) {
		if status.Phase == v1.PodFailed {
			once.Do(func() {
				fmt.Printf("%s: %s\n%s\n", pod.Name, status.Reason, status.Message)
				close(rejected)
			})
		}
	})
	cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *agent.Config) {
		c.Subsystems.Admitters = append(c.Subsystems.Admitters, tagPolicy{})
	}))

	k, err := kubelet.Open(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(runUntil(k, rejected))
	// Output:
	// web-edge-1: NoImageTag
	// Pod was rejected: container main has an image without a tag: nginx
	// <nil>
}

// A function in Config.Adjust adds HTTP routes to the kubelet's API. They are authenticated, and
// authorized as nodes/proxy.
func ExampleAdjust_server() {
	cfg, remove := exampleConfig(podManifest("web"))
	defer remove()
	cfg.Configuration.Address, cfg.Configuration.Port = "127.0.0.1", -1
	cfg.Configuration.Authentication.Anonymous.Enabled = new(true)
	cfg.Configuration.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
	cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *server.Config) {
		c.Handlers = map[string]http.Handler{
			"/version": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "edge 1.0") }),
		}
	}))

	k, err := kubelet.Open(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
		answer, err := c.Get(fmt.Sprintf("https://%s/version", k.APIAddr()))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		fmt.Println(answer.Status, string(body))
	}()
	fmt.Println(runUntil(k, done))
	// Output:
	// 200 OK edge 1.0
	// <nil>
}

// A kubelet with a client is a node of a cluster, here of an API server in memory.
func ExampleConfig_cluster() {
	api := new(apitest.Server)
	conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	cfg, remove := exampleConfig()
	defer remove()
	cfg.Cluster.Client = conn
	cfg.Configuration.Address, cfg.Configuration.Port = "127.0.0.1", -1
	cfg.Configuration.HealthzPort = new(int32(0))

	k, err := kubelet.Open(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		for !nodeReady(api, "edge-1") {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Println("node edge-1 is ready")
		close(ready)
	}()
	fmt.Println(runUntil(k, ready))
	// Output:
	// node edge-1 is ready
	// <nil>
}

// nodeReady reports whether a Node object has the condition Ready.
func nodeReady(api *apitest.Server, name string) bool {
	node, ok := api.Get("nodes", "", name).(*v1.Node)
	if !ok {
		return false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
