package kubelet_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// podManifest returns the manifest of a pod with one container.
func podManifest(name string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `}, spec: {containers: [{name: main, image: nginx}]}}`
}

// exampleConfig returns the Config of a standalone kubelet in a new directory, with static
// pods of these manifests, on a CRI runtime in memory.
func exampleConfig(manifests ...string) (cfg kubelet.Config, remove func()) {
	dir, err := os.MkdirTemp("", "kubelet")
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "manifests")
	if err := os.Mkdir(path, 0o700); err != nil {
		log.Fatal(err)
	}
	for i, text := range manifests {
		if err := os.WriteFile(filepath.Join(path, fmt.Sprint(i, ".yaml")), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	runtime, err := fakecri.New(fakecri.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return kubelet.Config{
		Configuration: &kubeletconfig.KubeletConfiguration{StaticPodPath: path, EvictionHard: map[string]string{}},
		NodeName:      "edge-1",
		RootDir:       filepath.Join(dir, "root"),
		Runtime:       kubelet.Runtime{Name: "fakecri", Service: runtime, Images: runtime, Processes: true},
		Logger:        slog.New(slog.DiscardHandler),
	}, func() { _ = os.RemoveAll(dir) }
}

// runUntil runs a kubelet until done is closed, or for half a minute.
func runUntil(k *kubelet.Kubelet, done <-chan struct{}) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	stopped := make(chan error, 1)
	go func() { stopped <- k.Run(ctx) }()
	select {
	case <-done:
		stop()
		return <-stopped
	case <-time.After(90 * time.Second):
		return errors.New("timeout")
	case err := <-stopped:
		return errors.Join(errors.New("the kubelet has stopped"), err)
	}
}

// A statusFunc is a status.Sink that is called with each status.
type statusFunc func(*v1.Pod, v1.PodStatus)

func (f statusFunc) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	f(pod, status)
	return nil
}

func (statusFunc) DeletePod(context.Context, *v1.Pod) error { return nil }

// whenRunning returns a sink that closes the channel when so many pods run.
func whenRunning(pods int) (sink statusFunc, done chan struct{}) {
	var mu sync.Mutex
	running := map[string]bool{}
	done = make(chan struct{})
	return func(pod *v1.Pod, status v1.PodStatus) {
		mu.Lock()
		defer mu.Unlock()
		if status.Phase != v1.PodRunning || running[pod.Name] {
			return
		}
		if running[pod.Name] = true; len(running) == pods {
			close(done)
		}
	}, done
}

// A standalone kubelet runs a static pod, here on a CRI runtime in memory.
func Example() {
	dir, _ := os.MkdirTemp("", "kubelet")
	defer os.RemoveAll(dir)
	manifest := filepath.Join(dir, "web.yaml")
	_ = os.WriteFile(manifest, []byte(`
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: main, image: nginx}
`), 0o600)

	runtime, err := fakecri.New(fakecri.Config{})
	if err != nil {
		log.Fatal(err)
	}
	running := make(chan struct{})
	once := sync.OnceFunc(func() { close(running) })
	k, err := kubelet.Open(context.Background(), kubelet.Config{
		Configuration: &kubeletconfig.KubeletConfiguration{
			StaticPodPath: manifest,
			EvictionHard:  map[string]string{}, // the disk of this machine may be full
		},
		NodeName: "edge-1",
		RootDir:  filepath.Join(dir, "root"),
		Runtime:  kubelet.Runtime{Name: "fakecri", Service: runtime, Images: runtime, Processes: true},
		Sink: statusFunc(func(pod *v1.Pod, status v1.PodStatus) {
			if status.Phase == v1.PodRunning {
				once()
			}
		}),
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- k.Run(ctx) }()

	select {
	case <-running:
	case <-time.After(90 * time.Second):
	}
	for _, pod := range k.Agent().Table().Desired() {
		fmt.Println(pod.Name, "is running")
	}
	stop() // the pod keeps running
	fmt.Println("Run returned", <-stopped)
	for _, c := range runtime.Containers("") {
		fmt.Println("container", c.Name, "is", c.State)
	}
	// Output:
	// web-edge-1 is running
	// Run returned <nil>
	// container main is running
}
