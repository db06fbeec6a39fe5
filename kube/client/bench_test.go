package client_test

import (
	"bufio"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	kruntime "github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// The API server calls of a pod, from its binding to its end. The kubelet reads each
// pod before it writes its status (st-66, st-67), and so needs 2 calls for each of the
// changes below and 1 to delete: 9 at least.
func TestCallsPerPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		objects, err := client.NewObjects(client.ObjectsConfig{Client: connect(t, d.api).API})
		require.NoError(t, err)
		running(t, objects.Run)
		m, err := status.New(status.Config{Sink: d})
		require.NoError(t, err)
		running(t, m.Run)
		d.api.Put(newSecret("db", "x"), newService("default", "kubernetes"))
		first := userOf("first", "db")
		objects.Register(first) // another pod of the same application exists
		synctest.Wait()
		d.api.Forget()

		pod := newPod("web")
		pod.Spec.Volumes, pod.Spec.EnableServiceLinks = first.Spec.Volumes, first.Spec.EnableServiceLinks
		d.api.Put(pod)
		pass(time.Second)
		report := func(state kruntime.ContainerState) {
			pod := d.api.Pod("prod", "web")
			objects.Register(pod)
			_, err := objects.Secret(t.Context(), "prod", "db")
			require.NoError(t, err)
			m.Report(pod, &kruntime.PodStatus{UID: pod.UID, Containers: []kruntime.ContainerStatus{{ID: "c1", Name: "main", State: state}}}, nil, kruntime.Termination{})
			pass(time.Second)
		}
		report(kruntime.ContainerCreated)
		report(kruntime.ContainerRunning)
		pass(24 * time.Hour)
		d.api.Put(deleting(d.api.Pod("prod", "web")))
		report(kruntime.ContainerRunning)
		report(kruntime.ContainerExited)
		ended := d.api.Pod("prod", "web")
		m.Finish(ended)
		objects.Unregister(ended.UID)
		pass(time.Hour)
		assert.Nil(t, d.api.Pod("prod", "web"))
		calls := callsOf(d.api.Calls())
		t.Logf("%d calls: %s", len(calls), strings.Join(calls, ", "))
		assert.LessOrEqual(t, len(calls), 5)
	})
}

// BenchmarkUpdatePodStatus measures the node's cost of a status: patch, call,
// response.
func BenchmarkUpdatePodStatus(b *testing.B) {
	api := new(apitest.Server)
	api.Put(newPod("web"))
	pods, s := synced(b, api)
	pod := pods.Pod("uid-1")
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		next := runningStatus()
		next.PodIP = fmt.Sprintf("10.0.%d.%d", i/256%256, i%256)
		if err := s.UpdatePodStatus(b.Context(), pod, next); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDrain drains 100 pods with 3 changes each, 50 ms for each call.
func BenchmarkDrain(b *testing.B) {
	api := &apitest.Server{Fault: func(c apitest.Call) apitest.Fault {
		if c.Verb == "patch" {
			return apitest.Fault{Latency: 50 * time.Millisecond}
		}
		return apitest.Fault{}
	}}
	for i := range 100 {
		api.Put(newPod(fmt.Sprintf("web-%03d", i)))
	}
	pods, s := synced(b, api)
	n := 0
	for b.Loop() {
		n++
		work := make(chan *v1.Pod)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for pod := range work {
					for change := range 3 {
						next := runningStatus()
						next.PodIP = fmt.Sprintf("10.%d.0.%d", n%256, change)
						assert.NoError(b, s.UpdatePodStatus(b.Context(), pod, next))
					}
				}
			})
		}
		for i := range 100 {
			work <- pods.Pod(types.UID(fmt.Sprintf("uid-%d", i+1)))
		}
		close(work)
		wg.Wait()
	}
}

// synced returns a synced Pods, and Statuses without a rate limit.
func synced(b *testing.B, api *apitest.Server) (*client.Pods, *client.Statuses) {
	conn, err := client.ConnectTo(api.RESTConfig(), client.Config{QPS: -1})
	require.NoError(b, err)
	pods, err := client.NewPods(client.PodsConfig{Client: conn.API, NodeName: nodeName})
	require.NoError(b, err)
	go func() { _ = pods.Run(b.Context(), func([]*v1.Pod) {}) }()
	require.Eventually(b, pods.Synced, 90*time.Second, time.Millisecond)
	s, err := client.NewStatuses(client.StatusesConfig{Client: conn.API, Pods: pods})
	require.NoError(b, err)
	return pods, s
}

// BenchmarkMemory measures the memory of a node of 110 pods that refer to 200 Secrets,
// with realistic connections (TLS, HTTP/2) to a server in another process.
func BenchmarkMemory(b *testing.B) {
	url := otherProcess(b)
	for i := range b.N {
		if i > 0 {
			break // one iteration: earlier garbage must not be measured
		}
		before, goroutines := heap(), runtime.NumGoroutine()
		conn, err := client.ConnectTo(&rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, client.Config{QPS: -1})
		require.NoError(b, err)
		pods, err := client.NewPods(client.PodsConfig{Client: conn.API, NodeName: nodeName})
		require.NoError(b, err)
		objects, err := client.NewObjects(client.ObjectsConfig{Client: conn.API, Wait: 10 * time.Second, Changed: func(string, string, string) {}})
		require.NoError(b, err)
		s, err := client.NewStatuses(client.StatusesConfig{Client: conn.API, Pods: pods})
		require.NoError(b, err)
		var wg sync.WaitGroup
		got := make(chan int, 100)
		wg.Go(func() { _ = objects.Run(b.Context()) })
		wg.Go(func() { _ = s.Run(b.Context()) })
		wg.Go(func() {
			_ = pods.Run(b.Context(), func(list []*v1.Pod) {
				for _, pod := range list {
					objects.Register(pod)
				}
				got <- len(list)
			})
		})
		require.Equal(b, benchPods, <-got)
		for i := range benchSecrets {
			_, err := objects.Secret(b.Context(), "prod", fmt.Sprintf("s-%d", i))
			require.NoError(b, err)
		}
		b.ReportMetric(float64(heap()-before)/1e6, "heap-MB")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
		runtime.KeepAlive(objects)
	}
}

// BenchmarkMemoryOfReflectors measures the same Secrets with one client-go reflector
// each, as in the kubelet.
func BenchmarkMemoryOfReflectors(b *testing.B) {
	url := otherProcess(b)
	for i := range b.N {
		if i > 0 {
			break
		}
		before, goroutines := heap(), runtime.NumGoroutine()
		conn, err := client.ConnectTo(&rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, client.Config{QPS: -1})
		require.NoError(b, err)
		var stores []cache.Store
		for i := range benchSecrets {
			lw := cache.NewListWatchFromClient(conn.API.CoreV1().RESTClient(), "secrets", "prod", fields.OneTermEqualSelector("metadata.name", fmt.Sprintf("s-%d", i)))
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			stores = append(stores, store)
			go cache.NewReflector(lw, &v1.Secret{}, store, 0).RunWithContext(b.Context())
		}
		require.Eventually(b, func() bool {
			return !slices.ContainsFunc(stores, func(s cache.Store) bool { return len(s.ListKeys()) == 0 })
		}, time.Minute, 10*time.Millisecond)
		b.ReportMetric(float64(heap()-before)/1e6, "heap-MB")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
		runtime.KeepAlive(stores)
	}
}

const benchPods, benchSecrets = 110, 200

func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// otherProcess starts this very binary as an API server, and returns its URL.
func otherProcess(b *testing.B) string {
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return strings.TrimSpace(url)
}

const serveEnv = "KUBEPARTS_TEST_API_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) == "" {
		os.Exit(m.Run())
	}
	api := new(apitest.Server)
	for i := range benchSecrets {
		api.Put(newSecret(fmt.Sprintf("s-%d", i), strings.Repeat("x", 1024)))
	}
	for i := range benchPods {
		pod := userOf(fmt.Sprintf("u-%d", i), fmt.Sprintf("s-%d", i))
		pod.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: fmt.Sprintf("s-%d", benchPods+i%(benchSecrets-benchPods))}}
		api.Put(pod)
	}
	server := httptest.NewUnstartedServer(api)
	server.EnableHTTP2 = true
	server.StartTLS()
	fmt.Println(server.URL)
	select {}
}
